// A deterministic discrete-event simulation of a plan on a platform.
//
// It executes the task lists that the runtime executes (schedule/step_schedule.h), step after step,
// on the three lanes of every worker, with the store between them; engine.h has the rules. What a
// task takes comes from the profile: compute times of the stage's layers, bytes over the links,
// latencies of requests.
//
// How that differs from the closed form of Liu et al. 2023 (planner/planning_problem.h)
//
//   Equal: with ideal waiting and one replica, t_f + t_b(0), whatever the stages take. The gates
//   that keep downloads at most kPrefetch micro-batches ahead cost nothing there: let the slowest
//   of all lanes take T a micro-batch; every lane can keep a beat of T, and a download may begin
//   when the forward of the second micro-batch before is over: it is, since download and forward
//   together take at most 2 T. Nor does it cost anything that activations and gradients share
//   lanes: gradients travel when all activations have.
//
//   Different:
//   - Latency in the all-reduce. A lane makes one request at a time: 2 n latencies for the
//     pipelined algorithm, not 2 + n, and 3 n - 2 for three phases, not 4. Equal for two replicas.
//   - The splits of a stage queue on the uplink behind its last gradient, so that stages but the
//     first begin to synchronise later by up to that upload.
//   - Steps overlap. The closed form adds the slowest stage's backward and synchronisation to the
//     whole forward pass; but the first stage begins its next step when it has ended its own. A
//     later stage that synchronises long has until its first activation of the next step comes: the
//     steady time of a step is less than t_iter then.
//   - Polling. A request that is on its way when its message becomes complete still finds it, so
//     that a message comes between 0 and a delay (20 ms at most) and a latency after that; with
//     ideal waiting and in the closed form, always a latency.
//   - Uneven shares. With micro-batches that the replicas do not divide, the busiest replica
//     decides; in the closed form all have the same.
//
// Without limits of the store and with ideal waiting, nothing gets slower when a link, a latency or
// a layer gets faster. With polling it can, by a poll.
#pragma once

#include "core/plan.h"
#include "core/profile.h"
#include "sim/simulation_options.h"
#include "sim/simulation_result.h"

namespace funcpipe {

// The same arguments give the same bits. Throws Error(kInvalidArgument) for a plan that is not one
// for the profile (a memory option that was not profiled, a layer that does not run in its stage's
// memory, layers missing), a micro-batch size other than the profile's, and options out of range.
SimulationResult simulate(const ModelProfile& profile, const Plan& plan, const TrainingShape& shape,
                          const SimulationOptions& options = {});

}  // namespace funcpipe

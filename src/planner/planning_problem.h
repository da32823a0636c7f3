// The co-optimisation problem in numbers: choose the cut points, a memory option for every stage
// and the data-parallel degree together (Liu et al. 2023, section 4). A performance model
// (performance_model.h) makes it from a profile; solvers see nothing else.
//
// Time of one iteration with stages k = 1..K, stage k = layers [h, e) at option j, mu micro-batches
// for each replica:
//
//   forward terms    F(k) = sum of forward over [h, e);   up(k) = up[j][e] if e < L;  down(k) = down[j][h] if h > 0
//   t_f            = sum of all forward terms + (mu - 1) * the largest of them
//   backward terms   B(k);  a gradient goes up at the cut h of stage k, and down at the cut e of stage k
//   t_b(k)         = sum of the backward terms of stages k..K + (mu - 1) * the largest of those
//                    (of the stages k..K: B, gradient down at e, and gradient up at h except stage k's own)
//   tail(k)        = update over [h, e) + sync_seconds_per_byte * sync_bytes + sync_seconds
//   t_iter         = t_f + max over k of (t_b(k) + tail(k))
//   usd            = t_iter * replicas * sum of price_units * usd_per_unit_second
//                    + sum over stages of stage_usd[j] + (K - 1) * cut_usd
//   memory of k    = base_bytes[j] + state_factor * parameter_bytes + fixed_bytes
//                    + mu * (activation_bytes + input_bytes[h]) + largest workspace_bytes of [h, e)
//                    <=  memory_bytes[j]
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace funcpipe {

struct PlanningProblem {
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Option {
    int memory_mb = 0;
    double memory_bytes = 0;
    double base_bytes = 0;
    std::int64_t price_units = 0;  // > 0: price of one second, a whole number of units
  };
  struct Layer {
    double parameter_bytes = 0;
    double fixed_bytes = 0;  // buffers and the like: kept once, whatever the degree
    double activation_bytes = 0;
    // Kept beside that by a stage that begins with this layer: what it received. At most input_bytes
    // + activation_bytes of the layer before, so that a stage never needs more memory for one layer
    // less.
    double input_bytes = 0;
    double workspace_bytes = 0;
    double sync_bytes = 0;  // what replicas have to sum
  };
  // What depends on the data-parallel degree. Vectors are indexed by option.
  struct Degree {
    int replicas = 1;
    int micro_batches = 1;                      // mu, of the busiest replica
    double state_factor = 2;                    // bytes held per byte of parameters
    std::vector<double> sync_seconds_per_byte;  // all 0 for one replica
    std::vector<double> sync_seconds;
    std::vector<double>
        stage_usd;  // of one stage (all its replicas) in one iteration, whatever its length
  };

  std::vector<Option> options;
  std::vector<Layer> layers;
  // Seconds for one micro-batch, [option][layer]; kNever: the layer does not run at this option.
  std::vector<std::vector<double>> forward, backward;
  std::vector<std::vector<double>> update;  // once an iteration
  // Seconds to send and to receive what crosses a cut, [option][cut]; cut i lies before layer i, so
  // 1 <= i < layers (entry 0 is unused).
  std::vector<std::vector<double>> up, down;
  std::vector<Degree> degrees;  // increasing replicas
  double usd_per_unit_second = 0;
  double cut_usd = 0;  // requests of one cut in one iteration, all replicas together

  int layer_count() const { return static_cast<int>(layers.size()); }
  int option_count() const { return static_cast<int>(options.size()); }
};

// One stage of a solution: layers [first, last) at options[option].
struct StageChoice {
  int first = 0;
  int last = 0;
  int option = 0;
  bool operator==(const StageChoice&) const = default;
};

struct Solution {
  std::vector<StageChoice> stages;
  int degree = 0;  // index into PlanningProblem::degrees
  bool operator==(const Solution&) const = default;
};

// What is minimised, and what must hold.
struct Objective {
  // a1 * usd + a2 * seconds. Ties go to the smaller time, then the smaller cost.
  double usd_weight = 1;                         // a1
  double seconds_weight = 0;                     // a2
  double max_seconds = PlanningProblem::kNever;  // of one iteration
  double max_usd = PlanningProblem::kNever;
  std::int64_t max_functions = std::numeric_limits<std::int64_t>::max();

  static Objective cheapest() { return {}; }
  static Objective fastest() { return {0, 1}; }
  double value(double usd, double seconds) const {
    return usd_weight * usd + seconds_weight * seconds;
  }
};

// How sure a solver is.
struct Proof {
  enum class Status {
    kOptimal,     // no solution is better
    kFeasible,    // stopped early, or a heuristic: `bound` says how much better one could be
    kInfeasible,  // proved: there is none
    kUnknown,     // stopped before a solution was found
  };
  Status status = Status::kUnknown;
  double bound = -PlanningProblem::kNever;  // no solution's objective is below this
};

struct SolverResult {
  std::optional<Solution> solution;
  double seconds = 0;  // of one iteration, as evaluate() says
  double usd = 0;
  double objective = 0;
  Proof proof;
  double solver_seconds = 0;  // wall time spent
  std::int64_t explored = 0;  // labels, nodes or evaluations, for the curious
};

}  // namespace funcpipe

// Partial plans of a suffix of the layers. Internal to the exact solver.
//
// Plans are made from the last stage to the first. A label is a plan of the layers [h, L) for some
// position h, with the cut at h paid for on this side. With mu micro-batches, forward terms f and
// backward terms b of its stages (planning_problem.h), sums and maxima over all of them:
//
//   x = (mu - 1) max f       y = (mu - 1) max b
//   Q = sum f + sum b        P = sum f + max over its stages k of (t_b(k) + tail(k))
//
// t_b(k) looks at stages k and later only, so P is final but for the forward terms to come.
// Prepending stage [g, h) of an option:
//
//   x = max(x, (mu - 1) max(F, up_h))           y = max(y, (mu - 1) max(B, down_h))
//   Q = Q + F + B + up_h + down_h               P = max(P + F + up_h, Q + y + tail)
//   and for its own left cut, if g > 0, which its own t_b does not contain:
//   x = max(x, (mu - 1) down_g)                 y = max(y, (mu - 1) up_g)
//   Q = Q + down_g + up_g                       P = P + down_g
//
// At h = 0 the plan is complete and t = P + x.
//
// Dominance. Complete labels A and B at h by the same prefix, with forward terms f', backward terms
// b'. Each candidate for the time is the label's part plus what is the same for both:
//
//   stage k of the label:   P + sum f' + max(x, x')
//   stage k of the prefix:  Q + sum f' + sum b'(k..) + max(x, x') + max(y, y'(k)) + tail(k)
//
// Each max is one or the other, so if A is not above B in
//
//   P,  P + x,  Q,  Q + x,  Q + y,  Q + x + y,
//
// no completion of A takes longer than the same of B; if A also has no more units, constant costs
// and (where their number is limited) stages, B can be forgotten.
//
// Exchange. Under a single objective value = t (units a + w) + constants, A may also make up for one
// with the other. Let V be the value to beat, and B have d units more than A. If A is later by at
// most D, a completion of B of time t and weight W = units a + w, useful only if t W < V, is worth no less than A's if
// (t + D)(W - a d) <= t W, that is D <= t a d / (W - a d). As W < V / t and t >= T, the least time of B's
// useful completions, D = T^2 a d / V is enough. And if B has d units less, A must be earlier by at
// least D with (t - D)(W + a d) <= t W, that is D >= t a d / (W + a d); as t < V / W and W >= U, the least
// weight of B's useful completions, D = V a d / U^2 is enough.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/degree_model.h"
#include "planner/exact_target.h"

namespace funcpipe::exact {

struct Label {
  double p = 0, q = 0, x = 0, y = 0;
  double usd = 0;  // constant costs
  std::int64_t units = 0;
  std::int32_t cells = 0;  // sum of the options' (exact_bounds.h)
  std::int32_t stages = 0;
  // The first stage ends where label `parent` of position `end` begins.
  std::int32_t end = 0;
  std::int32_t parent = 0;
  std::int32_t option = 0;
};

// `label` (which begins at e) with stage [h, e) before it.
Label prepend(const DegreeModel& model, const Label& label, int option, int h, int e);

// A label that is not useless, with what its bounds say.
struct Candidate {
  Label label;
  float room = 0;                // how promising: the more the better
  float least_seconds = 0;       // T
  std::int64_t least_units = 0;  // U
};

class DominanceFilter {
 public:
  // `counts_stages`: their number is limited.
  DominanceFilter(const DegreeModel& model, bool counts_stages);

  // Removes dominated candidates. The order of what is left is not that of before.
  void apply(const Target& target, std::vector<Candidate>& candidates);

 private:
  // What is compared, of the labels kept so far.
  struct Kept {
    double p, px, q, qx, qy, qxy;
    double units;
    double usd;
    std::int32_t stages;
  };
  // Seconds that a label may be later for every unit it has less, and must be earlier for every
  // unit it has more, to dominate.
  struct Slack {
    double slower = 0;
    double faster = 1e300;
  };
  static Kept keys_of(const Label& label);
  static Slack slack_of(const Candidate& candidate, const Target::Exchange& exchange);
  bool is_dominated(const Kept& keys, const Slack& slack) const;

  const DegreeModel& model_;
  const bool counts_stages_;
  std::vector<Kept> kept_;
};

}  // namespace funcpipe::exact

// Which of two plans is better, and whether one is within the limits: the one meaning of an
// Objective, shared by every solver and by the references they are checked against.
//
// Sums of times depend on the order of their additions. Figures that differ by less than
// kTolerance of themselves are equal here, and a limit holds when it holds to that tolerance.
#pragma once

#include <cstdint>
#include <optional>

#include "planner/evaluate.h"
#include "planner/planning_problem.h"

namespace funcpipe {

inline constexpr double kTolerance = 1e-12;

// a < b, and the difference is more than rounding. For values of at least 0, infinity included.
inline bool clearly_less(double a, double b) { return a < b * (1 - kTolerance); }

// What a plan is judged by.
struct Figures {
  double seconds = 0;
  double usd = 0;
  std::int64_t functions = 0;
};

// -1, 0, 1: `a` is better than `b`, equal, worse. By value, then seconds, then usd.
int compare(const Objective& objective, const Figures& a, const Figures& b);

// `a` is nowhere worse than `b`, in time and cost.
bool covers(const Figures& a, const Figures& b);

bool within_limits(const Objective& objective, const Figures& figures);

// Figures of a solution that runs: every stage fits its memory and every time is finite.
// Nothing otherwise.
std::optional<Figures> figures_of(const PlanningProblem& problem, const Solution& solution);

}  // namespace funcpipe

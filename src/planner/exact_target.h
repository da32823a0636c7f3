// What the exact solver is looking for: the region of (seconds, price) in which a new plan would be
// worth having. It shrinks as plans are found. Internal to the exact solver.
//
//   seconds
//      |        dead
//      | ......
//      |       .......      cap(units): a plan of this many price units
//      |  alive       ....  is of use if it is no slower
//      +------------------- units
//
// cap never grows with the units or the constant costs: a plan that costs more must be faster.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "planner/degree_model.h"
#include "planner/ranking.h"

namespace funcpipe::exact {

// Seconds within the limits on time and cost.
double limit_cap(const Objective& limits, const Price& price, double units, double usd);

class Target {
 public:
  virtual ~Target() = default;

  // Least upper bound on the seconds of useful plans with at least these units and constant costs;
  // plans at the bound are useful too. Below 0: none is. Infinity: all are.
  virtual double cap(const Price& price, double units, double usd) const = 0;

  // A plan that runs. Kept if it is useful.
  virtual void offer(const Solution& solution, const Figures& figures) = 0;

  // How much time one unit is worth, so that partial plans of different units can be compared
  // (exact_labels.h). Nothing where each number of units counts for itself.
  struct Exchange {
    double value = 0;            // to be beaten
    double weight_per_unit = 0;  // value = seconds * (units * weight_per_unit + weight) + ...
    double weight = 0;
    bool may_be_slower = false;  // a plan may take longer if its value is less
    bool may_cost_more = false;  // a plan may cost more if its value is less
  };
  virtual std::optional<Exchange> exchange(const Price& price) const = 0;

  // Changes with every plan kept.
  int version() const { return version_; }

 protected:
  void changed() { ++version_; }

 private:
  int version_ = 0;
};

// The best plan under an objective.
class BestTarget : public Target {
 public:
  explicit BestTarget(const Objective& objective) : objective_(objective) {}

  double cap(const Price& price, double units, double usd) const override;
  void offer(const Solution& solution, const Figures& figures) override;
  std::optional<Exchange> exchange(const Price& price) const override;

  // Objective of a plan that takes this long, at least.
  double value(const Price& price, double seconds, double units, double usd) const;

  const Objective& objective() const { return objective_; }
  const std::optional<Solution>& solution() const { return solution_; }
  const Figures& figures() const { return figures_; }

 private:
  double weight(const Price& price, double units) const;
  double value_cap(const Price& price, double units, double usd) const;
  // The seconds at which a plan's value is this.
  double seconds_for(double value, const Price& price, double units, double usd) const;

  Objective objective_;
  std::optional<Solution> solution_;
  Figures figures_;
};

// Every plan that no other covers in time and cost.
class FrontierTarget : public Target {
 public:
  struct Point {
    Solution solution;
    Figures figures;
  };

  explicit FrontierTarget(const Objective& limits) : limits_(limits) {}

  double cap(const Price& price, double units, double usd) const override;
  void offer(const Solution& solution, const Figures& figures) override;
  std::optional<Exchange> exchange(const Price&) const override { return std::nullopt; }

  const std::vector<Point>& points() const { return points_; }  // increasing seconds

 private:
  Objective limits_;
  std::vector<Point> points_;
};

}  // namespace funcpipe::exact

#include "planner/milp_programme.h"

#include <algorithm>
#include <utility>

namespace funcpipe {
namespace {

constexpr double kNever = PlanningProblem::kNever;
// CBC's tolerances are absolute: values are scaled so that the best plan known has this one, and
// times so that the shortest possible is 1.
constexpr double kScaledValue = 1e4;
// CBC may lose a plan that only just holds: limits give way by this much, relatively.
constexpr double kSlack = 1e-7;

double positive_or_one(double value) { return value > 0 && value < kNever ? value : 1; }

double least(const std::vector<MilpStage>& stages, double MilpStage::*figure) {
  double result = kNever;
  for (const auto& stage : stages) result = std::min(result, stage.*figure);
  return result;
}

bool over(const MilpStage& stage, int layer) {
  return stage.choice.first <= layer && layer < stage.choice.last;
}

}  // namespace

MilpProgramme::MilpProgramme(const PlanningProblem& problem, const Objective& objective, int degree,
                             const std::vector<MilpStage>& stages, double cutoff)
    : objective_(objective),
      stages_(stages),
      degree_(degree),
      layers_(problem.layer_count()),
      waits_(problem.degrees[static_cast<std::size_t>(degree)].micro_batches - 1),
      cutoff_(cutoff) {
  const double least_seconds = least(stages, &MilpStage::least_seconds);
  second_unit_ = positive_or_one(least_seconds);
  const double value = cutoff < kNever ? cutoff : least(stages, &MilpStage::least_value);
  value_unit_ = positive_or_one(value) / kScaledValue;

  for (const auto& stage : stages)
    model_.add_binary(objective.usd_weight * stage.constant_usd / value_unit_);
  add_flow(0, {}, 1);
  seconds_ = model_.add_continuous(least_seconds / second_unit_,
                                   objective.max_seconds / second_unit_ * (1 + kSlack),
                                   objective.seconds_weight * second_unit_ / value_unit_);
  add_seconds();
  if (objective.usd_weight > 0 || objective.max_usd < kNever) add_usd();
  const auto replicas = problem.degrees[static_cast<std::size_t>(degree)].replicas;
  if (const auto most = objective.max_functions / replicas; most < layers_)
    add_sum(
        -kNever, {}, [](const auto&) { return 1; }, static_cast<double>(most));
}

MilpResult MilpProgramme::solve(Duration time_limit) const {
  CbcOptions options;
  options.time_limit = time_limit;
  options.cutoff = cutoff_ / value_unit_ * (1 + kSlack);
  auto result = funcpipe::solve(model_, options);
  result.bound *= value_unit_;
  return result;
}

Solution MilpProgramme::plan(const MilpResult& result) const {
  Solution solution{{}, degree_};
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (result.values[s] > 0.5) solution.stages.push_back(stages_[s].choice);
  return solution;
}

void MilpProgramme::exclude(const Solution& solution) {
  const auto chosen = [&](const MilpStage& stage) {
    return std::count(solution.stages.begin(), solution.stages.end(), stage.choice);
  };
  add_sum(-kNever, {}, chosen, static_cast<double>(solution.stages.size()) - 1);
}

template <typename Factor>
void MilpProgramme::add_sum(double lower, Terms terms, Factor factor, double upper) {
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const auto f = static_cast<double>(factor(stages_[s]));
    if (f != 0) terms.push_back({static_cast<int>(s), f});
  }
  model_.add_row(lower, std::move(terms), upper);
}

template <typename Seconds>
void MilpProgramme::add_at_least(Terms terms, Seconds seconds) {
  add_sum(
      0, std::move(terms), [&](const auto& s) { return -seconds(s) / second_unit_; }, kNever);
}

void MilpProgramme::add_flow(int first_column, const Terms& source, double amount) {
  std::vector<Terms> nodes(static_cast<std::size_t>(layers_) + 1);
  nodes.front() = source;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const int column = first_column + static_cast<int>(s);
    nodes[static_cast<std::size_t>(stages_[s].choice.first)].push_back({column, 1});
    nodes[static_cast<std::size_t>(stages_[s].choice.last)].push_back({column, -1});
  }
  nodes.pop_back();  // the end: follows from the others
  for (auto& node : nodes) {
    model_.add_row(amount, std::move(node), amount);
    amount = 0;
  }
}

void MilpProgramme::add_seconds() {
  const int largest = model_.add_continuous(0, kNever, 0);  // X
  const int rest = model_.add_continuous(0, kNever, 0);     // R
  add_at_least({{seconds_, 1}, {largest, -waits_}, {rest, -1}},
               [](const MilpStage& s) { return s.forward_terms; });
  for (int i = 0; i < layers_; ++i) {
    add_at_least({{largest, 1}},
                 [&](const MilpStage& s) { return over(s, i) ? s.largest_forward : 0; });
  }
  add_backward(rest);
}

void MilpProgramme::add_backward(int rest) {
  const int largest = model_.column_count();  // Y_0
  for (int i = 0; i < layers_; ++i) {
    model_.add_continuous(0, kNever, 0);
    add_at_least({{rest, 1}, {largest + i, -waits_}}, [&](const MilpStage& s) {
      if (over(s, i)) return s.backward + s.tail;
      return s.choice.first > i ? s.backward + s.gradient_up : 0;
    });
    add_at_least({{largest + i, 1}},
                 [&](const MilpStage& s) { return over(s, i) ? s.largest_backward : 0; });
  }
  for (int i = 1; i < layers_; ++i) {
    model_.add_row(0, {{largest + i - 1, 1}, {largest + i, -1}}, kNever);
    add_at_least({{largest + i - 1, 1}},
                 [&](const MilpStage& s) { return s.choice.first == i ? s.gradient_up : 0; });
  }
}

void MilpProgramme::add_usd() {
  const int shares = model_.column_count();  // w
  const double unit = objective_.max_usd < kNever ? positive_or_one(objective_.max_usd) : 1;
  Terms usd;
  for (std::size_t s = 0; s < stages_.size(); ++s) {
    const auto& stage = stages_[s];
    const double price = stage.usd_per_second * second_unit_;
    const int chosen = static_cast<int>(s);
    const int share = model_.add_continuous(0, kNever, objective_.usd_weight * price / value_unit_);
    model_.add_row(0, {{share, 1}, {chosen, -stage.least_seconds / second_unit_}}, kNever);
    model_.add_row(-kNever, {{share, 1}, {chosen, -stage.most_seconds / second_unit_}}, 0);
    usd.push_back({share, price / unit});
    usd.push_back({chosen, stage.constant_usd / unit});
  }
  add_flow(shares, {{seconds_, -1}}, 0);
  if (objective_.max_usd < kNever)
    model_.add_row(-kNever, std::move(usd), objective_.max_usd / unit * (1 + kSlack));
}

}  // namespace funcpipe

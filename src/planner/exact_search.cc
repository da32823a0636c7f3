#include "planner/exact_search.h"

#include <algorithm>

namespace funcpipe::exact {
namespace {

constexpr int kCallsBetweenLooks = 64;
constexpr std::size_t kFilterEvery = 2048;  // candidates at a position

}  // namespace

Watch::Watch(const ExactOptions& options) : options_(options) {}

double Watch::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool Watch::is_over() {
  if (over_ || ++calls_ % kCallsBetweenLooks != 1) return over_;
  over_ = options_.stop.stop_requested() ||
          std::chrono::steady_clock::now() - start_ >= options_.time_limit;
  return over_;
}

Search::Search(const DegreeModel& model, const PlanningProblem& problem, PrefixBounds& bounds,
               Target& target, Watch& watch)
    : model_(model), problem_(problem), bounds_(bounds), target_(target), watch_(watch) {}

bool Search::run(const SearchLimits& limits) {
  limits_ = limits;
  counts_stages_ = limits.max_stages < model_.layers();
  complete_ = true;
  labels_.assign(static_cast<std::size_t>(model_.layers()) + 1, {});
  settled_.assign(labels_.size(), 0);
  labels_.back().push_back({});
  for (int end = model_.layers(); end > 0; --end) {
    settle(end);
    const auto count = labels_[static_cast<std::size_t>(end)].size();
    for (std::size_t i = 0; i < count; ++i) {
      if (watch_.is_over()) return false;
      expand(end, i);
    }
  }
  return complete_;
}

void Search::settle(int position) {
  if (version_ != target_.version()) {
    bounds_.update_caps(target_);
    version_ = target_.version();
  }
  auto& candidates = labels_[static_cast<std::size_t>(position)];
  if (position == model_.layers()) return;
  DominanceFilter(model_, counts_stages_).apply(target_, candidates);
  if (candidates.size() <= limits_.beam) return;
  complete_ = false;
  const auto better = [](const Candidate& a, const Candidate& b) { return a.room > b.room; };
  const auto end = candidates.begin() + static_cast<std::ptrdiff_t>(limits_.beam);
  std::nth_element(candidates.begin(), end, candidates.end(), better);
  candidates.erase(end, candidates.end());
}

void Search::expand(int end, std::size_t index) {
  ++explored_;
  const auto& label = labels_[static_cast<std::size_t>(end)][index].label;
  const double largest = bounds_.largest_bottleneck(end, label);
  if (largest < 0) return;
  for (std::size_t j = 0; j < model_.options().size(); ++j) {
    const auto& option = model_.options()[j];
    const auto last = static_cast<std::size_t>(end);
    if (!option.can_cut[last] || model_.repeats() * option.link[last] > largest) continue;
    expand(end, index, static_cast<int>(j), largest);
  }
}

void Search::expand(int end, std::size_t index, int j, double largest_bottleneck) {
  const auto& option = model_.options()[static_cast<std::size_t>(j)];
  const auto last = static_cast<std::size_t>(end);
  const auto label = labels_[last][index].label;
  for (int h = end - 1; h >= option.first_start[last]; --h) {
    const auto first = static_cast<std::size_t>(h);
    if (model_.repeats() * (option.work[last] - option.work[first]) > largest_bottleneck) return;
    if (!option.can_cut[first]) continue;
    if (counts_stages_ && label.stages + 1 + model_.least_stages()[first] > limits_.max_stages)
      continue;
    auto next = prepend(model_, label, j, h, end);
    next.cells += bounds_.option_cells(j);
    next.parent = static_cast<std::int32_t>(index);
    if (h == 0) {
      complete(next);
    } else {
      add(h, next);
    }
  }
}

void Search::add(int position, const Label& label) {
  const auto verdict = bounds_.judge(position, label);
  if (verdict.room < 0) return;
  auto& candidates = labels_[static_cast<std::size_t>(position)];
  candidates.push_back({label, verdict.room, verdict.least_seconds, verdict.least_units});
  auto& settled = settled_[static_cast<std::size_t>(position)];
  if (candidates.size() < 2 * settled + kFilterEvery) return;
  DominanceFilter(model_, counts_stages_).apply(target_, candidates);
  settled = candidates.size();
}

void Search::complete(const Label& label) {
  const double seconds = label.p + label.x;
  if (seconds > target_.cap(model_.price(), static_cast<double>(label.units), label.usd)) return;
  const auto solution = solution_of(label);
  if (const auto figures = figures_of(problem_, solution)) target_.offer(solution, *figures);
}

Solution Search::solution_of(const Label& label) const {
  Solution solution;
  solution.degree = model_.degree();
  int first = 0;
  for (const auto* step = &label; step->end > 0;) {
    solution.stages.push_back({first, step->end, step->option});
    first = step->end;
    if (first == model_.layers()) break;
    step = &labels_[static_cast<std::size_t>(first)][static_cast<std::size_t>(step->parent)].label;
  }
  return solution;
}

}  // namespace funcpipe::exact

#include "planner/performance_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/error.h"
#include "core/batching.h"
#include "planner/evaluate.h"

namespace funcpipe {
namespace {

// The largest number that divides all values up to rounding: Euclid's algorithm on doubles.
double common_unit(const std::vector<double>& values) {
  double unit = 0;
  for (double value : values) {
    const double least = 1e-9 * value;
    double divisor = unit;
    while (divisor > least) {
      const double rest = std::fabs(value - divisor * std::round(value / divisor));
      value = std::exchange(divisor, rest);
    }
    unit = value;
  }
  return unit;
}

double slower_link(const ProfiledOption& option) {
  return std::min(option.uplink_bytes_per_second, option.downlink_bytes_per_second);
}

class ProblemBuilder {
 public:
  ProblemBuilder(PerformanceModel model, const ModelProfile& profile, const PlanningInput& input)
      : full_(model == PerformanceModel::kFull),
        profile_(profile),
        input_(input),
        micro_batches_(count_micro_batches(input.batch_size, profile.micro_batch_size)) {}

  PlanningProblem build() {
    choose_options();
    add_options();
    add_layers();
    for (const auto option : options_) add_times(option);
    for (const int degree : degrees()) add_degree(degree);
    if (full_) {
      const auto& platform = input_.platform;
      problem_.cut_usd =
          static_cast<double>(micro_batches_) * 2 * (platform.usd_per_put + platform.usd_per_get);
    }
    check(problem_);
    return std::move(problem_);
  }

 private:
  void choose_options() {
    if (input_.memory_mb.empty()) {
      for (std::size_t i = 0; i < profile_.options.size(); ++i) options_.push_back(i);
      return;
    }
    for (const int memory_mb : input_.memory_mb) options_.push_back(option_of(memory_mb));
    std::sort(options_.begin(), options_.end());
    options_.erase(std::unique(options_.begin(), options_.end()), options_.end());
  }

  std::size_t option_of(int memory_mb) const {
    if (const auto option = profile_.option_of(memory_mb)) return *option;
    std::string known;
    for (const auto& option : profile_.options)
      known += fmt::format("{}{}", known.empty() ? "" : ", ", option.memory_mb);
    fail(ErrorCode::kInvalidArgument,
         "the profile has no memory option of {} MB; it has {}: choose one of these, or profile "
         "with --memory {}",
         memory_mb, known, memory_mb);
  }

  double price(const ProfiledOption& option) const {
    if (full_) return usd_per_second(input_.platform, option.memory_mb);
    return option.memory_mb / 1024.0 * input_.platform.usd_per_gb_second;
  }

  void add_options() {
    std::vector<double> prices;
    for (const auto option : options_) prices.push_back(price(profile_.options[option]));
    problem_.usd_per_unit_second = common_unit(prices);
    for (std::size_t i = 0; i < options_.size(); ++i) {
      const auto& option = profile_.options[options_[i]];
      problem_.options.push_back({option.memory_mb,
                                  static_cast<double>(option.memory_mb) * kMebibyte,
                                  static_cast<double>(option.base_memory_bytes),
                                  std::llround(prices[i] / problem_.usd_per_unit_second)});
    }
  }

  void add_layers() {
    for (const auto& layer : profile_.layers) {
      PlanningProblem::Layer result;
      result.parameter_bytes = static_cast<double>(layer.parameter_bytes);
      result.activation_bytes = static_cast<double>(layer.activation_bytes);
      result.sync_bytes = result.parameter_bytes;
      if (full_) {
        result.fixed_bytes = static_cast<double>(layer.buffer_bytes);
        result.workspace_bytes = static_cast<double>(layer.workspace_bytes);
        result.sync_bytes += result.fixed_bytes;
      }
      problem_.layers.push_back(result);
    }
    if (full_) add_inputs();
  }

  // What a stage receives, it keeps until backward. Where a later layer takes more than all layers up
  // to it keep, room for that one counts.
  void add_inputs() {
    double next = 0;
    for (auto i = problem_.layers.size(); i-- > 0;) {
      auto& layer = problem_.layers[i];
      const double own = i > 0 ? static_cast<double>(profile_.layers[i - 1].output_bytes) : 0;
      layer.input_bytes = std::max(own, next - layer.activation_bytes);
      next = layer.input_bytes;
    }
  }

  void add_times(std::size_t index) {
    const auto& option = profile_.options[index];
    std::vector<double> forward, backward, update, up, down;
    double output_bytes = 0;  // of the layer before
    for (const auto& layer : profile_.layers) {
      const auto& timing = layer.timings[index];
      forward.push_back(timing.fits ? timing.forward_seconds : PlanningProblem::kNever);
      backward.push_back(timing.fits ? timing.backward_seconds : PlanningProblem::kNever);
      update.push_back(full_ ? timing.update_seconds : 0);
      up.push_back(output_bytes / option.uplink_bytes_per_second + option.latency_seconds);
      down.push_back(output_bytes / option.downlink_bytes_per_second + option.latency_seconds);
      output_bytes = static_cast<double>(layer.output_bytes);
    }
    problem_.forward.push_back(std::move(forward));
    problem_.backward.push_back(std::move(backward));
    problem_.update.push_back(std::move(update));
    problem_.up.push_back(std::move(up));
    problem_.down.push_back(std::move(down));
  }

  std::vector<int> degrees() const {
    if (input_.degrees.empty()) return dividing_degrees(micro_batches_, input_.max_degree);
    auto degrees = input_.degrees;
    std::sort(degrees.begin(), degrees.end());
    degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
    for (const int degree : degrees) check_degree(degree);
    return degrees;
  }

  void check_degree(int degree) const {
    if (degree >= 1 && micro_batches_ % degree == 0) return;
    std::string right;
    for (const int divisor : dividing_degrees(micro_batches_, static_cast<int>(micro_batches_)))
      right += fmt::format("{}{}", right.empty() ? "" : ", ", divisor);
    fail(ErrorCode::kInvalidArgument,
         "{} replicas do not divide a mini-batch of {} micro-batches ({} samples in micro-batches "
         "of {}); degrees that do: {}",
         degree, micro_batches_, input_.batch_size, profile_.micro_batch_size, right);
  }

  // Bytes held for one byte of parameters.
  double state_factor(int degree) const {
    if (!full_) return degree > 1 ? 4 : 2;
    return 2 + input_.optimizer.state_values_per_parameter() + (degree > 1 ? 1 : 0);
  }

  void add_degree(int replicas) {
    PlanningProblem::Degree degree;
    degree.replicas = replicas;
    degree.micro_batches = static_cast<int>(micro_batches_ / replicas);
    degree.state_factor = state_factor(replicas);
    for (const auto index : options_) {
      const auto& option = profile_.options[index];
      const auto sync = full_ ? all_reduce_cost(input_.all_reduce, replicas, option)
                              : paper_all_reduce_cost(replicas, option);
      const double norms = full_ && input_.clip ? 2 * option.latency_seconds : 0;
      degree.sync_seconds_per_byte.push_back(sync.seconds_per_byte);
      degree.sync_seconds.push_back(sync.seconds + norms);
      degree.stage_usd.push_back(full_ ? stage_usd(replicas, option) : 0);
    }
    problem_.degrees.push_back(std::move(degree));
  }

  // Of all replicas of a stage in one step: the requests of its all-reduce (every rank puts n - 1
  // splits and one merged split, and gets as many of the former and n - 1 of the latter), and its
  // share of what starting the functions costs.
  double stage_usd(int replicas, const ProfiledOption& option) const {
    const auto& platform = input_.platform;
    const double requests =
        replicas == 1 ? 0
                      : replicas * platform.usd_per_put + 2 * (replicas - 1) * platform.usd_per_get;
    const double start = platform.usd_per_invocation + option.cold_start_seconds * price(option);
    return replicas * (requests + start / static_cast<double>(input_.steps));
  }

  const bool full_;
  const ModelProfile& profile_;
  const PlanningInput& input_;
  const std::int64_t micro_batches_;
  std::vector<std::size_t> options_;  // indices into the profile's
  PlanningProblem problem_;
};

}  // namespace

std::string_view to_string(PerformanceModel model) {
  return model == PerformanceModel::kPaper ? "paper" : "full";
}

PerformanceModel performance_model_from(std::string_view name) {
  for (const auto model : {PerformanceModel::kPaper, PerformanceModel::kFull})
    if (name == to_string(model)) return model;
  fail(ErrorCode::kInvalidArgument, "unknown performance model '{}'; known are paper and full",
       name);
}

PlanningProblem make_problem(PerformanceModel model, const ModelProfile& profile,
                             const PlanningInput& input) {
  return ProblemBuilder(model, profile, input).build();
}

std::vector<int> dividing_degrees(std::int64_t micro_batches, int max_degree) {
  std::vector<int> degrees;
  for (int degree = 1; degree <= max_degree && degree <= micro_batches; ++degree)
    if (micro_batches % degree == 0) degrees.push_back(degree);
  return degrees;
}

AllReduceCost paper_all_reduce_cost(int replicas, const ProfiledOption& option) {
  if (replicas == 1) return {};
  return {2 / slower_link(option), (2 + replicas) * option.latency_seconds};
}

AllReduceCost all_reduce_cost(AllReduceAlgorithm algorithm, int replicas,
                              const ProfiledOption& option) {
  if (replicas == 1) return {};
  if (algorithm == AllReduceAlgorithm::kThreePhase) {
    return {(3 - 2.0 / replicas) / slower_link(option),
            (3 * replicas - 2) * option.latency_seconds};
  }
  return {2 / slower_link(option), 2 * replicas * option.latency_seconds};
}

Plan to_plan(const PlanningProblem& problem, const Solution& solution,
             AllReduceAlgorithm all_reduce) {
  Plan plan;
  for (const auto& stage : solution.stages) {
    plan.stages.push_back({stage.first, stage.last,
                           problem.options.at(static_cast<std::size_t>(stage.option)).memory_mb});
  }
  plan.replicas = problem.degrees.at(static_cast<std::size_t>(solution.degree)).replicas;
  plan.all_reduce = all_reduce;
  return plan;
}

Solution to_solution(const PlanningProblem& problem, const Plan& plan) {
  Solution solution;
  for (const auto& stage : plan.stages) {
    const auto option = std::find_if(problem.options.begin(), problem.options.end(),
                                     [&](const auto& o) { return o.memory_mb == stage.memory_mb; });
    if (option == problem.options.end()) {
      fail(ErrorCode::kInvalidArgument, "the profile has no memory option of {} MB",
           stage.memory_mb);
    }
    solution.stages.push_back(
        {stage.first_layer, stage.last_layer, static_cast<int>(option - problem.options.begin())});
  }
  if (solution.stages.empty() || solution.stages.back().last != problem.layer_count()) {
    fail(ErrorCode::kInvalidArgument, "the plan is not for a model of {} layers",
         problem.layer_count());
  }
  const auto degree = std::find_if(problem.degrees.begin(), problem.degrees.end(),
                                   [&](const auto& d) { return d.replicas == plan.replicas; });
  if (degree == problem.degrees.end()) {
    fail(ErrorCode::kInvalidArgument, "{} replicas are not a degree of the planning problem",
         plan.replicas);
  }
  solution.degree = static_cast<int>(degree - problem.degrees.begin());
  return solution;
}

}  // namespace funcpipe

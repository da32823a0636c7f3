#include "planner/random_problem.h"

#include <algorithm>

namespace funcpipe {
namespace {

class Maker {
 public:
  Maker(Rng& rng, const RandomProblemOptions& options) : rng_(rng), wish_(options) {}

  PlanningProblem make() {
    add_options(between(1, wish_.max_options));
    add_layers(between(1, wish_.max_layers));
    for (const auto& option : problem_.options) add_times(option);
    add_degrees();
    problem_.usd_per_unit_second = wish_.exact ? 0.25 : 1e-5 * (0.5 + rng_.uniform());
    if (wish_.constant_usd) problem_.cut_usd = usd();
    return std::move(problem_);
  }

 private:
  int between(int least, int most) {
    return least + static_cast<int>(rng_.below(static_cast<std::uint64_t>(most - least + 1)));
  }

  bool chance(double probability) { return rng_.uniform() < probability; }

  // In [0, limit).
  double seconds(double limit) {
    return wish_.exact ? static_cast<double>(rng_.below(8)) * limit / 8 : limit * rng_.uniform();
  }

  // What a stage or a cut costs, of the order of one of few seconds' price.
  double usd() { return wish_.exact ? static_cast<double>(rng_.below(3)) : 3e-5 * rng_.uniform(); }

  double bytes(int limit) { return static_cast<double>(between(0, limit)); }

  void add_options(int count) {
    int memory = between(2, 6);
    for (int j = 0; j < count; ++j) {
      problem_.options.push_back(
          {memory, static_cast<double>(memory) * 100, bytes(50), std::int64_t{memory} * 2});
      memory += between(1, 8);
    }
    for (auto& option : problem_.options) {
      if (wish_.unordered_prices) option.price_units = between(1, 9);
      if (wish_.large_prices) option.price_units = option.price_units * 997 + between(0, 99);
    }
  }

  void add_layers(int count) {
    for (int i = 0; i < count; ++i) {
      PlanningProblem::Layer layer;
      layer.parameter_bytes = bytes(120);
      layer.activation_bytes = bytes(30);
      layer.sync_bytes = layer.parameter_bytes;
      if (wish_.workspace) {
        layer.fixed_bytes = bytes(40);
        if (i > 0) {
          const auto& before = problem_.layers.back();
          layer.input_bytes = bytes(static_cast<int>(before.input_bytes + before.activation_bytes));
        }
        layer.workspace_bytes = bytes(200);
      }
      problem_.layers.push_back(layer);
      forward_.push_back(seconds(4));
      backward_.push_back(wish_.exact ? seconds(8) : forward_.back() * (1 + 2 * rng_.uniform()));
      update_.push_back(seconds(2));
      output_.push_back(seconds(2));
    }
  }

  // Options with more memory are faster, up to a point; now and then a link is the bottleneck.
  void add_times(const PlanningProblem::Option& option) {
    const double speed = wish_.exact ? 1.0 / between(1, 2) : std::min(option.memory_mb, 12) / 8.0;
    const double link = chance(0.3) ? 4 : 1;
    std::vector<double> forward, backward, update, up, down;
    for (std::size_t i = 0; i < problem_.layers.size(); ++i) {
      const bool runs = !wish_.never || chance(0.85);
      forward.push_back(runs ? forward_[i] / speed : PlanningProblem::kNever);
      backward.push_back(runs ? backward_[i] / speed : PlanningProblem::kNever);
      update.push_back(wish_.update ? update_[i] / speed : 0);
      up.push_back(i == 0 ? 0 : output_[i - 1] * link);
      down.push_back(wish_.asymmetric_links && i > 0 ? seconds(2) * link : up.back());
    }
    problem_.forward.push_back(forward);
    problem_.backward.push_back(backward);
    problem_.update.push_back(update);
    problem_.up.push_back(up);
    problem_.down.push_back(down);
  }

  void add_degrees() {
    const int micro_batches = between(1, wish_.max_micro_batches);
    const int count = between(1, wish_.max_degrees);
    for (int replicas = 1; replicas < (1 << count) && replicas <= micro_batches; replicas *= 2) {
      PlanningProblem::Degree degree;
      degree.replicas = replicas;
      degree.micro_batches = (micro_batches + replicas - 1) / replicas;
      degree.state_factor = replicas > 1 ? 4 : 2;
      for (int j = 0; j < problem_.option_count(); ++j) {
        const bool syncs = replicas > 1;
        degree.sync_seconds_per_byte.push_back(syncs ? seconds(0.5) / 8 : 0);
        degree.sync_seconds.push_back(syncs || wish_.update ? seconds(4) : 0);
        degree.stage_usd.push_back(wish_.constant_usd ? usd() : 0);
      }
      problem_.degrees.push_back(degree);
    }
  }

  Rng& rng_;
  const RandomProblemOptions& wish_;
  PlanningProblem problem_;
  std::vector<double> forward_, backward_, update_, output_;  // of a function of speed 1
};

}  // namespace

PlanningProblem random_problem(Rng& rng, const RandomProblemOptions& options) {
  return Maker(rng, options).make();
}

RandomProblemOptions with_random_extras(Rng& rng, RandomProblemOptions options) {
  for (bool* extra :
       {&options.exact, &options.asymmetric_links, &options.constant_usd, &options.update,
        &options.workspace, &options.never, &options.unordered_prices, &options.large_prices})
    *extra = rng.below(2) == 1;
  return options;
}

}  // namespace funcpipe

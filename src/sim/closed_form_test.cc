// The simulator against the formulas of Liu et al. 2023, computed here in exact arithmetic: all
// times are whole nanoseconds.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/rng.h"
#include "sim/sim_fixture.h"
#include "sim/sim_time.h"

namespace funcpipe {
namespace {

using sim::SimTime;

SimTime time_of(double seconds) { return SimTime(std::llround(seconds * 1e12)); }

// The terms of the formulas.
struct Terms {
  SimTime forward, backward, update;
  SimTime up, down;                    // activation out of the stage, into the next
  SimTime gradient_up, gradient_down;  // gradient out of the next stage, into the stage
};

std::vector<Terms> terms_of(const std::vector<TestStage>& stages) {
  std::vector<Terms> result;
  for (std::size_t k = 0; k < stages.size(); ++k) {
    const auto& stage = stages[k];
    Terms terms{
        time_of(stage.forward), time_of(stage.backward), time_of(stage.update), {}, {}, {}, {}};
    if (k + 1 < stages.size()) {
      const auto& next = stages[k + 1];
      const auto bytes = static_cast<double>(stage.output_bytes);
      terms.up = time_of(stage.latency + bytes / stage.uplink);
      terms.down = time_of(next.latency + bytes / next.downlink);
      terms.gradient_up = time_of(next.latency + bytes / next.uplink);
      terms.gradient_down = time_of(stage.latency + bytes / stage.downlink);
    }
    result.push_back(terms);
  }
  return result;
}

SimTime forward_time(const std::vector<Terms>& stages, int micro_batches) {
  SimTime sum{}, largest{};
  for (const auto& terms : stages) {
    for (const auto term : {terms.forward, terms.up, terms.down}) {
      sum += term;
      largest = std::max(largest, term);
    }
  }
  return sum + (micro_batches - 1) * largest;
}

// t_b of stage k; `with_own`: including the upload of the stage's own gradient.
SimTime backward_time(const std::vector<Terms>& stages, std::size_t k, int micro_batches,
                      bool with_own = false) {
  SimTime sum{}, largest{};
  const auto add = [&](SimTime term) {
    sum += term;
    largest = std::max(largest, term);
  };
  for (auto i = k; i < stages.size(); ++i) {
    add(stages[i].backward);
    add(stages[i].gradient_up);
    add(stages[i].gradient_down);
  }
  if (with_own && k > 0) add(stages[k - 1].gradient_up);
  return sum + (micro_batches - 1) * largest;
}

double iteration(const TestCase& test, int batch, SimulationOptions options) {
  return test.run(batch, options).iteration_seconds;
}

std::vector<TestStage> balanced(int stages, double latency) {
  TestStage stage;
  stage.forward = 0.3;
  stage.backward = 0.6;
  stage.output_bytes = 40'000'000;
  stage.uplink = stage.downlink = 100e6;
  stage.latency = latency;
  stage.parameter_bytes = 4 * 3'600'000;  // divides by 2, 3, 4, 5
  return std::vector<TestStage>(static_cast<std::size_t>(stages), stage);
}

std::vector<TestStage> random_stages(Rng& rng, int stages) {
  std::vector<TestStage> result;
  const auto nanoseconds = [&](std::uint64_t most) {
    return static_cast<double>(rng.below(most)) * 1e-9;
  };
  for (int k = 0; k < stages; ++k) {
    TestStage stage;
    stage.forward = nanoseconds(1'000'000);
    stage.backward = nanoseconds(2'000'000);
    stage.latency = nanoseconds(300'000);
    stage.output_bytes = rng.below(1'000'000);
    stage.parameter_bytes = rng.below(10) * 480'000;
    stage.uplink = 1e9 / static_cast<double>(std::uint64_t{1} << rng.below(3));
    stage.downlink = 1e9 / static_cast<double>(std::uint64_t{1} << rng.below(3));
    result.push_back(stage);
  }
  return result;
}

TEST(ClosedForm, BalancedPipelineOfOneReplica) {
  for (const double latency : {0.0, 0.04}) {
    for (int stages = 1; stages <= 6; ++stages) {
      for (const int micro_batches : {1, 2, 3, 8, 33}) {
        const TestCase test(balanced(stages, latency));
        const auto terms = terms_of(balanced(stages, latency));
        EXPECT_EQ(iteration(test, micro_batches, SimulationOptions::closed_form()),
                  sim::in_seconds(forward_time(terms, micro_batches) +
                                  backward_time(terms, 0, micro_batches)))
            << stages << " stages, " << micro_batches << " micro-batches";
      }
    }
  }
}

// Whatever the stages take: neither the prefetch window nor the single lanes make a difference.
TEST(ClosedForm, AnyPipelineOfOneReplica) {
  Rng rng(5);
  for (int round = 0; round < 2000; ++round) {
    const auto stages = random_stages(rng, 1 + static_cast<int>(rng.below(7)));
    const int micro_batches = 1 + static_cast<int>(rng.below(12));
    const auto terms = terms_of(stages);
    const auto expected =
        forward_time(terms, micro_batches) + backward_time(terms, 0, micro_batches);
    EXPECT_EQ(iteration(TestCase(stages), micro_batches, SimulationOptions::closed_form()),
              sim::in_seconds(expected))
        << "round " << round;
  }
}

// t_s of the paper: 2 s / w + (2 + n) lat; LambdaML's three phases: (3 - 2 / n) s / w + 4 lat.
TEST(ClosedForm, BalancedReplicas) {
  for (const auto algorithm : {AllReduceAlgorithm::kPipelined, AllReduceAlgorithm::kThreePhase}) {
    for (const int n : {2, 3, 4, 5}) {
      for (const double latency : {0.0, 0.04}) {
        if (n > 2 && latency > 0) continue;  // the next test
        const auto stages = balanced(3, latency);
        const double s_over_w = static_cast<double>(stages[0].parameter_bytes) / stages[0].uplink;
        const double sync = algorithm == AllReduceAlgorithm::kPipelined
                                ? 2 * s_over_w + (2 + n) * latency
                                : (3 - 2.0 / n) * s_over_w + 4 * latency;
        const auto terms = terms_of(stages);
        const auto expected = forward_time(terms, 6) + backward_time(terms, 0, 6) + time_of(sync);
        EXPECT_EQ(
            iteration(TestCase(stages, n, algorithm), 6 * n, SimulationOptions::closed_form()),
            sim::in_seconds(expected))
            << n << " replicas, " << to_string(algorithm);
      }
    }
  }
}

// A lane makes one request after the other, so that the latencies of more replicas add up.
TEST(ClosedForm, LatenciesOfManyReplicas) {
  for (const auto algorithm : {AllReduceAlgorithm::kPipelined, AllReduceAlgorithm::kThreePhase}) {
    for (const int n : {2, 3, 4, 5}) {
      const bool pipelined = algorithm == AllReduceAlgorithm::kPipelined;
      const auto stages = balanced(2, 0.04);
      const double s_over_w = static_cast<double>(stages[0].parameter_bytes) / stages[0].uplink;
      const double sync =
          pipelined ? 2 * s_over_w + 2 * n * 0.04 : (3 - 2.0 / n) * s_over_w + (3 * n - 2) * 0.04;
      const auto terms = terms_of(stages);
      const auto expected = forward_time(terms, 6) + backward_time(terms, 0, 6) + time_of(sync);
      EXPECT_EQ(iteration(TestCase(stages, n, algorithm), 6 * n, SimulationOptions::closed_form()),
                sim::in_seconds(expected))
          << n << " replicas, " << to_string(algorithm);
    }
  }
}

// The first step of any pipeline with replicas: a stage's splits leave behind its last gradient.
TEST(ClosedForm, AnyPipelineWithReplicas) {
  Rng rng(6);
  for (int round = 0; round < 500; ++round) {
    auto stages = random_stages(rng, 1 + static_cast<int>(rng.below(5)));
    for (auto& stage : stages) stage.downlink = stage.uplink;
    const int n = 2 + static_cast<int>(rng.below(3));
    const int micro_batches = 1 + static_cast<int>(rng.below(5));
    const auto terms = terms_of(stages);
    SimTime rest{};
    for (std::size_t k = 0; k < stages.size(); ++k) {
      const auto split = static_cast<double>(stages[k].parameter_bytes) / n / stages[k].uplink;
      const auto sync = 2 * n * time_of(split + stages[k].latency);
      const auto own = backward_time(terms, k, micro_batches);
      const auto uplink = backward_time(terms, k, micro_batches, true);
      rest = std::max({rest, std::max(own, uplink) + sync});
    }
    auto options = SimulationOptions::closed_form();
    options.steps = 1;
    EXPECT_EQ(iteration(TestCase(stages, n), micro_batches * n, options),
              sim::in_seconds(forward_time(terms, micro_batches) + rest))
        << "round " << round;
  }
}

// A last stage that synchronises long does so while the next step has begun.
TEST(ClosedForm, StepsOverlap) {
  auto stages = balanced(2, 0);
  stages[0].parameter_bytes = 0;
  stages[1].parameter_bytes = 4 * 25'000'000;  // 2 s / w = 2 s
  auto options = SimulationOptions::closed_form();
  const TestCase test(stages, 2);
  const auto steady = iteration(test, 2, options);
  options.steps = 1;
  const auto alone = iteration(test, 2, options);
  // Forward 0.3 + 0.4 + 0.4 + 0.3, backward 0.6; the gradient's upload of 0.4; 2 s.
  EXPECT_DOUBLE_EQ(alone, 1.4 + 0.6 + 0.4 + 2);
  // The first activation of the next step is there long before: a step begins when the last stage
  // has received it, 0.4 after it has synchronised.
  EXPECT_DOUBLE_EQ(steady, 0.4 + 0.3 + 0.6 + 0.4 + 2);
}

}  // namespace
}  // namespace funcpipe

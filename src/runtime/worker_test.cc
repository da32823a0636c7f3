#include "runtime/worker.h"

#include <array>
#include <atomic>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "core/run_layout.h"
#include "core/trace.h"
#include "data/dataset_writer.h"
#include "data/safetensors.h"
#include "runtime/toy_stage.h"
#include "store/counting_store.h"
#include "store/memory_store.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

constexpr int kLayers = 4;

class WorkerTest : public testing::Test {
 protected:
  void SetUp() override {
    write_data(train_, 37, 1);
    write_data(test_, 11, 2);
    write_model();
    job_.model.builtin = "toy";
    job_.data = {"train", "test", {}, {}};
    job_.training.epochs = 2;
    job_.training.batch_size = 10;
    job_.training.micro_batch_size = 3;
    job_.training.loss = LossKind::kMeanSquaredError;
    job_.training.optimizer.learning_rate = 0.05;
    job_.seed = 7;
  }

  static void write_data(ObjectStore& store, std::int64_t records, std::uint64_t seed) {
    Rng rng(seed);
    std::vector<float> inputs(static_cast<std::size_t>(records)), targets(inputs.size());
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      inputs[i] = static_cast<float>(rng.uniform());
      targets[i] = 2 * inputs[i];
    }
    TensorView x, y;
    x.shape = y.shape = {records, 1};
    x.data = std::as_bytes(std::span(inputs));
    y.data = std::as_bytes(std::span(targets));
    write_dataset(store, "", x, y, {});
  }

  void write_model() {
    const RunLayout layout("run");
    ModelManifest manifest;
    manifest.name = "toy";
    manifest.inputs = {{"", DType::kFloat32, {1}}};
    for (int i = 0; i < kLayers; ++i) {
      LayerManifest layer;
      layer.name = std::to_string(i);
      layer.kind = "Toy";
      layer.file = fmt::format("layer-{}", i);
      layer.export_method = "built-in";
      layer.outputs = {{"", DType::kFloat32, {1}}};
      manifest.layers.push_back(layer);
      const float weight = 0.9F + 0.1F * static_cast<float>(i);
      put(store_, layout.model_file(layer.file), std::as_bytes(std::span(&weight, 1)));
    }
    put(store_, layout.model_file("manifest.json"), as_bytes(manifest.to_json().dump()));
  }

  Plan plan(const std::vector<int>& cuts, int replicas) const {
    Plan plan;
    plan.stages = stages_from_cuts(cuts, kLayers, {1769});
    plan.replicas = replicas;
    return plan;
  }

  std::unique_ptr<ObjectStore> open(const std::string& url) {
    ObjectStore& store = url == "train" ? train_ : url == "test" ? test_ : store_;
    return std::make_unique<CountingStore>(store, counter_);
  }

  WorkerReport run_one(const Plan& plan, WorkerId worker, std::int64_t step, Duration time_limit) {
    const WorkerTask task{"run", "messages", job_, plan, worker, 0, step};
    const WorkerEnvironment environment{[&](const std::string& url) { return open(url); },
                                        [&] { return counter_.snapshot(); },
                                        make_stage_,
                                        clock_,
                                        Deadline::after(clock_, time_limit),
                                        64 * kMebibyte,
                                        {}};
    // As over the wire.
    return run_worker(WorkerTask::from_text(task.to_json().dump()), environment);
  }

  // All workers at once, each invoked again as long as it wants to go on; the first error is
  // rethrown.
  void run(const Plan& plan, Duration time_limit = 60s) {
    const auto workers = plan.workers();
    std::vector<std::exception_ptr> errors(workers.size());
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < workers.size(); ++i) {
      threads.emplace_back([&, i] {
        try {
          WorkerReport report;
          do {
            report = run_one(plan, workers[i], report.next_step, time_limit);
            invocations_ += 1;
          } while (report.status == WorkerReport::Status::kContinue);
        } catch (...) {
          errors[i] = std::current_exception();
          put(store_, RunLayout("run").stop(), as_bytes("x"));
        }
      });
    }
    threads.clear();
    for (const auto& error : errors) {
      if (error) std::rethrow_exception(error);
    }
  }

  std::vector<float> weights(const Plan& plan) {
    std::vector<float> result;
    for (int stage = 0; stage < plan.stage_count(); ++stage) {
      auto object = store_.get(RunLayout("run").result(stage));
      if (!object) return {};
      for (const auto& [name, tensor] : parse_safetensors(std::move(*object), "result").tensors) {
        float value = 0;
        std::memcpy(&value, tensor.data.data(), sizeof(value));
        result.push_back(value);
      }
    }
    return result;
  }

  std::vector<double> losses(int replicas) {
    const auto steps =
        StepSequence(37, job_.training.batch_size, job_.training.epochs, job_.training.steps)
            .steps();
    std::vector<double> sums(static_cast<std::size_t>(steps), 0);
    for (int replica = 0; replica < replicas; ++replica) {
      for (std::int64_t next = 0; next < steps;) {
        const auto object = store_.get(RunLayout("run").metrics(replica, next));
        if (!object) return {};
        for (const auto& record : step_records_from_text(object->text())) {
          sums[static_cast<std::size_t>(record.step)] += record.loss_sum;
          next = record.step + 1;
        }
      }
    }
    return sums;
  }

  void forget_results() {
    for (const auto& object : list_all(store_, "run/")) {
      if (!object.key.starts_with("run/model/")) store_.remove(object.key);
    }
  }

  std::vector<std::string> messages() {
    std::vector<std::string> keys;
    for (const auto* prefix : {"run/m/", "run/e/"}) {
      for (const auto& object : list_all(store_, prefix)) keys.push_back(object.key);
    }
    return keys;
  }

  MemoryStore train_, test_, store_;
  UsageCounter counter_;
  SteadyClock clock_;
  JobSpec job_;
  std::atomic<int> invocations_{0};
  StageFactory make_stage_ = [](StageSource source) {
    return std::make_unique<ToyStage>(std::move(source));
  };
};

TEST_F(WorkerTest, EveryCutGivesTheBitsOfTheWholeModel) {
  run(plan({}, 1));
  const auto expected_weights = weights(plan({}, 1));
  const auto expected_losses = losses(1);
  ASSERT_EQ(expected_weights.size(), static_cast<std::size_t>(kLayers));
  ASSERT_EQ(expected_losses.size(), 8U);
  EXPECT_LT(expected_losses.back(), expected_losses.front());
  for (const auto& cuts : std::vector<std::vector<int>>{{1}, {2}, {1, 3}, {1, 2, 3}}) {
    forget_results();
    run(plan(cuts, 1));
    EXPECT_EQ(weights(plan(cuts, 1)), expected_weights);
    EXPECT_EQ(losses(1), expected_losses);
  }
}

// 37 records in batches of 10 in micro-batches of 3: short micro-batches, a short last batch, and
// replicas without work in it.
TEST_F(WorkerTest, ReplicasTrainOnEverySampleWithEqualWeight) {
  run(plan({}, 1));
  const auto expected = weights(plan({}, 1));
  const auto expected_losses = losses(1);
  for (const int replicas : {2, 3, 4}) {
    for (const auto algorithm : {AllReduceAlgorithm::kThreePhase, AllReduceAlgorithm::kPipelined}) {
      forget_results();
      auto replicated = plan({2}, replicas);
      replicated.all_reduce = algorithm;
      run(replicated);
      const auto got = weights(replicated);
      ASSERT_EQ(got.size(), expected.size());
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_NEAR(got[i], expected[i], 1e-5) << replicas << " replicas";
      const auto got_losses = losses(replicas);
      for (std::size_t i = 0; i < got_losses.size(); ++i)
        EXPECT_NEAR(got_losses[i], expected_losses[i], 1e-4);
    }
  }
}

TEST_F(WorkerTest, ClippingUsesTheNormOfTheWholeModel) {
  job_.training.clip_norm = 0.05;
  run(plan({}, 1));
  const auto clipped = weights(plan({}, 1));
  for (const auto& cuts : std::vector<std::vector<int>>{{1}, {1, 2, 3}}) {
    forget_results();
    run(plan(cuts, 1));
    EXPECT_EQ(weights(plan(cuts, 1)), clipped);
  }
  forget_results();
  run(plan({1}, 2));
  const auto replicated = weights(plan({1}, 2));
  for (std::size_t i = 0; i < clipped.size(); ++i) EXPECT_NEAR(replicated[i], clipped[i], 1e-5);
  forget_results();
  job_.training.clip_norm = 0;
  run(plan({}, 1));
  EXPECT_NE(weights(plan({}, 1)), clipped);
}

TEST_F(WorkerTest, EvaluationCoversTheTestSetOnceAnEpoch) {
  const auto shape = plan({1}, 2);
  run(shape);
  for (const std::int64_t steps : {4, 8}) {
    std::int64_t samples = 0;
    for (int replica = 0; replica < 2; ++replica) {
      const auto object = store_.get(RunLayout("run").evaluation(replica, steps));
      ASSERT_TRUE(object) << "after " << steps << " steps";
      samples += evaluation_record_from_text(object->text()).samples;
    }
    EXPECT_EQ(samples, 11);
  }
}

// Messages are removed as soon as nobody can need them: what is left does not grow with the number
// of steps.
TEST_F(WorkerTest, TheStoreStaysSmall) {
  job_.training.clip_norm = 1;
  const auto shape = plan({1, 2}, 2);
  run(shape);
  const auto few = messages().size();
  forget_results();
  job_.training.epochs = 20;
  run(shape);
  EXPECT_EQ(messages().size(), few);
}

TEST_F(WorkerTest, GoesOnInANewFunctionBeforeTheTimeLimit) {
  run(plan({2}, 2));
  const auto expected = weights(plan({2}, 2));
  const auto expected_losses = losses(2);
  forget_results();
  invocations_ = 0;
  run(plan({2}, 2), 2900ms);  // below the reserve: every step is the last of its function
  EXPECT_EQ(invocations_, 4 * 8);
  EXPECT_EQ(weights(plan({2}, 2)), expected);
  EXPECT_EQ(losses(2), expected_losses);
}

TEST_F(WorkerTest, ALossThatIsNoNumberStopsTheRunAndSaysWhere) {
  job_.training.optimizer.learning_rate = 1e30;
  try {
    run(plan({2}, 1));
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_TRUE(text.find("worker 1.0: the loss is") != std::string::npos ||
                error.code() == ErrorCode::kCancelled)
        << text;
  }
}

TEST_F(WorkerTest, AMissingLayerIsNamed) {
  store_.remove("run/model/layer-2");
  try {
    run_one(plan({2}, 1), {1, 0}, 0, 10s);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_NE(std::string(error.what()).find("run/model/layer-2"), std::string::npos)
        << error.what();
  }
}

TEST_F(WorkerTest, AnErrorOfTheMathematicsReachesTheCaller) {
  class Broken : public ToyStage {
   public:
    using ToyStage::ToyStage;
    TensorBundle backward(const MicroBatchContext&, TensorBundle) override {
      fail(ErrorCode::kInvalidArgument, "layer 3: broken");
    }
  };
  make_stage_ = [](StageSource source) { return std::make_unique<Broken>(std::move(source)); };
  try {
    run_one(plan({}, 1), {0, 0}, 0, 10s);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "worker 0.0: layer 3: broken");
  }
}

TEST_F(WorkerTest, LeavesATimelineOfAllLanes) {
  run(plan({2}, 2));
  const auto object = store_.get(RunLayout("run").trace({0, 1}, 0));
  ASSERT_TRUE(object);
  const auto trace = worker_trace_from_text(object->text());
  std::array<int, 3> events{};
  for (const auto& event : trace.events) {
    EXPECT_LE(event.begin_unix_ns, event.end_unix_ns);
    ++events.at(static_cast<std::size_t>(event.lane));
  }
  for (const int count : events) EXPECT_GT(count, 8);
}

}  // namespace
}  // namespace funcpipe

#include "profile/profiler.h"

#include <atomic>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "store/memory_store.h"

namespace funcpipe {
namespace {

using Kind = InvocationOutcome::Kind;
using TaskKind = ProfileTask::Kind;
using testing::HasSubstr;

constexpr int kLayers = 6;

// Answers at once, as a test says.
class FakePlatform : public FunctionPlatform {
 public:
  using Answer = std::function<InvocationOutcome(int memory_mb, const ProfileTask&)>;
  explicit FakePlatform(Answer answer) : answer_(std::move(answer)) {}

  std::unique_ptr<Invocation> invoke(std::string_view function, std::string payload) override {
    class Done : public Invocation {
     public:
      explicit Done(InvocationOutcome outcome) : outcome_(std::move(outcome)) {}
      std::optional<InvocationOutcome> wait(Deadline) override { return outcome_; }

     private:
      InvocationOutcome outcome_;
    };
    const int memory_mb = std::stoi(std::string(function.substr(function.find('-') + 1)));
    return std::make_unique<Done>(answer_(memory_mb, ProfileTask::from_text(payload)));
  }
  const PlatformSpec& spec() const override { return spec_; }

 private:
  const Answer answer_;
  const PlatformSpec spec_ = aws_lambda_spec();
};

InvocationOutcome failed(Kind kind, bool cold = true) {
  InvocationOutcome outcome;
  outcome.kind = kind;
  outcome.error_message = "what happened";
  outcome.usage.cold_start = cold;
  return outcome;
}

// A function that always computes gets a quarter of its time; layer i takes i seconds forward.
InvocationOutcome healthy(const ProfileTask& task, int rounds) {
  ProfileReport report;
  if (task.kind == TaskKind::kLinks) report.links = {1e6, 2e6, 0.08};
  if (task.kind == TaskKind::kLayers) {
    for (int i = task.first_layer; i < task.last_layer; ++i) {
      const std::vector<double> forward(static_cast<std::size_t>(rounds), i);
      report.layers.push_back({10, 20, 30, forward, forward, forward});
    }
    report.stretch.assign(static_cast<std::size_t>(rounds), 4);
  }
  InvocationOutcome outcome;
  outcome.payload = report.to_json().dump();
  outcome.usage.cold_start = task.kind == TaskKind::kStart;
  outcome.usage.max_memory_used_mb = 170;
  outcome.usage.billed = std::chrono::seconds(1);
  return outcome;
}
InvocationOutcome healthy(const ProfileTask& task) { return healthy(task, task.rounds); }

class ProfilerTest : public testing::Test {
 protected:
  ProfilerTest() {
    manifest_.name = "chain";
    for (int i = 0; i < kLayers; ++i) {
      auto& layer = manifest_.layers.emplace_back();
      layer.name = layer.file = std::to_string(i);
      layer.kind = "Linear";
    }
    files_.resize(kLayers);
    job_ = JobSpec::from_config(ConfigNode::from_text(
        "{model: {builtin: mlp}, data: {train: d}, training: {batch_size: 4}}", "job"));
  }

  ModelProfile run(FakePlatform::Answer answer, std::vector<int> memory_mb = {1024},
                   ProfileProgress progress = {}, std::stop_token stop = {}) {
    FakePlatform platform(std::move(answer));
    const ProfileRequest request{
        .job = job_,
        .manifest = manifest_,
        .layer_files = files_,
        .run = "run",
        .store_url = "memory:",
        .memory_mb = std::move(memory_mb),
        .function_name = [](int memory) { return fmt::format("f-{}", memory); },
        .rounds = 3,
        .time_dilation = 2,
        .parallel = parallel_};
    Profiler profiler(request, store_, platform, clock_,
                      {[this](const std::string& text) { notes_.push_back(text); },
                       [this](const ProfileProgress& done) { progress_ = done; }});
    auto profile = profiler.run(std::move(progress), std::move(stop));
    accounts_ = profiler.accounts();
    return profile;
  }

  void expect_error(ErrorCode code, const char* text, FakePlatform::Answer answer) {
    try {
      run(std::move(answer));
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), code);
      EXPECT_THAT(error.what(), HasSubstr(text));
    }
  }

  ModelManifest manifest_;
  std::vector<Buffer> files_;
  JobSpec job_;
  MemoryStore store_;
  ManualClock clock_;
  int parallel_ = 1;
  std::vector<std::string> notes_;
  ProfileProgress progress_;
  std::vector<WorkerAccount> accounts_;
};

TEST_F(ProfilerTest, MeasuresInThePlatformsTime) {
  const auto profile = run([](int, const ProfileTask& task) { return healthy(task); });
  ASSERT_EQ(profile.option_count(), 1);
  EXPECT_EQ(profile.options[0].uplink_bytes_per_second, 2e6);
  EXPECT_EQ(profile.options[0].downlink_bytes_per_second, 4e6);
  EXPECT_EQ(profile.options[0].latency_seconds, 0.04);
  EXPECT_EQ(profile.options[0].base_memory_bytes, 170 * kMebibyte);
  ASSERT_EQ(profile.layer_count(), kLayers);
  EXPECT_EQ(profile.layers[3].timings[0].forward_seconds, 3 * 4 / 2.0);
  EXPECT_EQ(profile.layers[3].output_bytes, 30U);
  ASSERT_EQ(accounts_.size(), 1U);
  EXPECT_EQ(accounts_[0].invocations, 4);  // two starts, links, all layers together
  EXPECT_EQ(accounts_[0].billed, std::chrono::seconds(4));
}

TEST_F(ProfilerTest, LargeOptionsComeFirst) {
  std::vector<int> order;
  run(
      [&](int memory_mb, const ProfileTask& task) {
        if (task.kind == TaskKind::kLinks) order.push_back(memory_mb);
        return healthy(task);
      },
      {512, 2048, 1024});
  EXPECT_EQ(order, (std::vector<int>{2048, 1024, 512}));
}

// Layer 2 needs more than there is, and three layers at a time do, too.
TEST_F(ProfilerTest, LayersThatDoNotFitAreFoundAndMarked) {
  std::vector<std::pair<int, int>> tried;
  const auto answer = [&](int memory_mb, const ProfileTask& task) {
    if (task.kind != TaskKind::kLayers || memory_mb > 512) return healthy(task);
    tried.emplace_back(task.first_layer, task.last_layer);
    const bool has_large = task.first_layer <= 2 && task.last_layer > 2;
    const bool many = task.last_layer - task.first_layer > 2;
    return has_large || many ? failed(Kind::kOutOfMemory) : healthy(task);
  };
  const auto profile = run(answer, {512, 1024});
  for (int i = 0; i < kLayers; ++i) {
    EXPECT_EQ(profile.layers[static_cast<std::size_t>(i)].timings[0].fits, i != 2) << i;
    EXPECT_TRUE(profile.layers[static_cast<std::size_t>(i)].timings[1].fits) << i;
  }
  EXPECT_EQ(tried.front(), std::pair(0, 6));
  EXPECT_THAT(notes_, testing::Contains(HasSubstr("layer 2 ('2', Linear) does not fit")));
}

TEST_F(ProfilerTest, OutOfMemorySaidByTheFunctionCountsToo) {
  const auto answer = [](int memory_mb, const ProfileTask& task) {
    if (task.kind != TaskKind::kLayers || memory_mb > 512 || task.first_layer > 0)
      return healthy(task);
    auto outcome = failed(Kind::kFunctionError);
    outcome.error_type = to_string(ErrorCode::kResourceExhausted);
    return outcome;
  };
  EXPECT_FALSE(run(answer, {512, 1024}).layers[0].timings[0].fits);
}

// A function that has run other layers before may die of what they left.
TEST_F(ProfilerTest, AWarmFunctionOutOfMemoryIsTriedAfresh) {
  int calls = 0;
  run([&](int, const ProfileTask& task) {
    if (task.kind != TaskKind::kLayers) return healthy(task);
    return ++calls == 1 ? failed(Kind::kOutOfMemory, false) : healthy(task);
  });
  EXPECT_EQ(calls, 2);
}

TEST_F(ProfilerTest, OneLayerWithoutRoomForTwoMicroBatchesRunsWithOne) {
  const auto profile = run([](int, const ProfileTask& task) {
    const bool fits = task.kind != TaskKind::kLayers || task.micro_batches == 1;
    return fits ? healthy(task) : failed(Kind::kOutOfMemory);
  });
  EXPECT_TRUE(profile.layers[0].timings[0].fits);
}

TEST_F(ProfilerTest, RoundsGoOnInFurtherInvocations) {
  int calls = 0;
  const auto profile = run([&](int, const ProfileTask& task) {
    if (task.kind == TaskKind::kLayers) ++calls;
    return healthy(task, std::min(task.rounds, 2));
  });
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(profile.layers[5].timings[0].forward_seconds, 10);
  EXPECT_EQ(progress_.options.at(1024).layers[5].report.forward.size(), 3U);
}

TEST_F(ProfilerTest, LayersTooSlowForOneInvocationAreCutApart) {
  const auto profile = run([](int, const ProfileTask& task) {
    const bool slow = task.last_layer - task.first_layer > 3;
    return healthy(task, slow ? 0 : task.rounds);
  });
  for (const auto& layer : profile.layers) EXPECT_TRUE(layer.timings[0].fits);
}

TEST_F(ProfilerTest, AnOptionTooSmallForAWorkerIsMarked) {
  const auto profile = run(
      [](int memory_mb, const ProfileTask& task) {
        return memory_mb == 128 ? failed(Kind::kOutOfMemory) : healthy(task);
      },
      {128, 1024});
  EXPECT_EQ(profile.options[0].base_memory_bytes, 128 * kMebibyte);
  for (const auto& layer : profile.layers) EXPECT_FALSE(layer.timings[0].fits);
}

TEST_F(ProfilerTest, OtherFailuresAreErrors) {
  expect_error(ErrorCode::kInternal, "1024 MB ended: crashed (what happened)",
               [](int, const ProfileTask& task) {
                 return task.kind == TaskKind::kLayers ? failed(Kind::kCrashed) : healthy(task);
               });
  expect_error(ErrorCode::kFailedPrecondition, "refused to start",
               [](int, const ProfileTask&) { return failed(Kind::kRejected); });
  expect_error(ErrorCode::kUnavailable, "does not answer",
               [](int, const ProfileTask&) { return failed(Kind::kUnreachable); });
}

TEST_F(ProfilerTest, IsPatientWithAThrottlingPlatform) {
  int calls = 0;
  run([&](int, const ProfileTask& task) {
    return ++calls % 2 == 1 ? failed(Kind::kThrottled) : healthy(task);
  });
  EXPECT_EQ(accounts_[0].invocations, 4);
  expect_error(ErrorCode::kResourceExhausted, "could not be started",
               [](int, const ProfileTask&) { return failed(Kind::kThrottled); });
}

TEST_F(ProfilerTest, StopsOnRequestAndGoesOnFromThere) {
  std::stop_source stop;
  const auto interrupting = [&](int memory_mb, const ProfileTask& task) {
    if (memory_mb == 512 && task.kind == TaskKind::kLinks) stop.request_stop();
    return healthy(task);
  };
  EXPECT_THROW(run(interrupting, {512, 1024}, {}, stop.get_token()), Error);
  EXPECT_TRUE(progress_.options.at(1024).complete());
  EXPECT_FALSE(progress_.options.at(512).complete());

  progress_.options.at(1024).layers[4] = {};
  std::vector<std::pair<int, int>> measured;
  const auto profile = run(
      [&](int memory_mb, const ProfileTask& task) {
        if (task.kind == TaskKind::kLayers) measured.emplace_back(memory_mb, task.first_layer);
        EXPECT_TRUE(memory_mb == 512 || task.kind == TaskKind::kLayers);
        return healthy(task);
      },
      {512, 1024}, ProfileProgress::from_text(progress_.to_json().dump()));
  EXPECT_EQ(measured, (std::vector<std::pair<int, int>>{{1024, 4}, {512, 0}}));
  EXPECT_EQ(profile.option_count(), 2);
}

TEST_F(ProfilerTest, OptionsAtATimeAndAnErrorAmongThem) {
  parallel_ = 3;
  std::atomic<int> calls = 0;
  const auto profile = run(
      [&](int, const ProfileTask& task) {
        ++calls;
        return healthy(task);
      },
      {256, 512, 1024, 2048});
  EXPECT_EQ(calls, 16);
  EXPECT_EQ(profile.option_count(), 4);
  expect_error(ErrorCode::kInternal, "crashed",
               [](int, const ProfileTask&) { return failed(Kind::kCrashed); });
}

TEST_F(ProfilerTest, TheFingerprintTellsWhatCannotGoOnTogether) {
  const auto fingerprint = [&] {
    return ProfileRequest{.job = job_,
                          .manifest = manifest_,
                          .layer_files = files_,
                          .run = "run",
                          .store_url = "memory:",
                          .memory_mb = {512},
                          .function_name = {}}
        .fingerprint();
  };
  const auto first = fingerprint();
  EXPECT_EQ(fingerprint(), first);
  job_.name = "another";
  job_.plan.replicas = 7;
  EXPECT_EQ(fingerprint(), first);
  job_.training.micro_batch_size = 2;
  EXPECT_NE(fingerprint(), first);
  job_.training.micro_batch_size = 4;
  files_[2] = Buffer::copy_of(as_bytes("other weights"));
  EXPECT_NE(fingerprint(), first);
}

}  // namespace
}  // namespace funcpipe

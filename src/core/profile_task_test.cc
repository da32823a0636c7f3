#include "core/profile_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "core/worker_task.h"

namespace funcpipe {
namespace {

using testing::HasSubstr;

ProfileTask example_task() {
  ProfileTask task;
  task.kind = ProfileTask::Kind::kLayers;
  task.run = "profile-1";
  task.store = "file:///tmp/store";
  task.job = JobSpec::from_config(ConfigNode::from_text(
      "{model: {builtin: mlp}, data: {train: d}, training: {batch_size: 4}}", "job"));
  task.first_layer = 2;
  task.last_layer = 7;
  task.micro_batches = 2;
  task.warm_up_passes = 3;
  task.rounds = 5;
  task.round_seconds = 0.5;
  task.burst_bytes = 1 << 20;
  task.transfer_seconds = 4.5;
  return task;
}

TEST(ProfileTask, ReadsBackWhatItWrites) {
  const auto task = example_task();
  const auto text = task.to_json().dump();
  const auto read = ProfileTask::from_text(text);
  EXPECT_EQ(read.to_json().dump(), text);
  EXPECT_EQ(read.kind, task.kind);
  EXPECT_EQ(read.job, task.job);
}

TEST(ProfileTask, IsToldFromATrainingTask) {
  EXPECT_TRUE(is_profile_task(example_task().to_json().dump()));
  EXPECT_FALSE(is_profile_task(WorkerTask().to_json().dump()));
  EXPECT_FALSE(is_profile_task("{}"));
  EXPECT_FALSE(is_profile_task("not JSON"));
  EXPECT_FALSE(is_profile_task("[1]"));
}

void expect_rejected(const char* key, const nlohmann::json& value, const char* message) {
  auto json = example_task().to_json();
  json[key] = value;
  try {
    ProfileTask::from_text(json.dump());
    ADD_FAILURE() << key << " was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr(message));
  }
}

TEST(ProfileTask, RejectsWhatIsNone) {
  expect_rejected("funcpipe_profile_task", 2, "unknown version");
  expect_rejected("kind", "weather", "nothing that can be measured");
  expect_rejected("last_layer", 1, "no range");
  expect_rejected("colour", "red", "colour");
}

TEST(ProfileReport, ReadsBackWhatItWrites) {
  ProfileReport report;
  report.links = {7e7, 6e7, 0.04};
  report.layers = {{1, 2, 3, {0.1, 0.2}, {0.3, 0.4}, {0, 0}}, {0, 0, 0, {0, 0}, {0, 0}, {0, 0}}};
  report.stretch = {3.9, 4.1};
  report.usage.puts = 12;
  EXPECT_EQ(ProfileReport::from_text(report.to_json().dump()), report);
  report.links.reset();
  EXPECT_EQ(ProfileReport::from_text(report.to_json().dump()), report);
}

TEST(ProfileReport, DamageIsDataLoss) {
  for (const auto* text : {"", "{}", R"({"layers": 3})", "[]"}) {
    try {
      ProfileReport::from_text(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace funcpipe

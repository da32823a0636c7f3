#include "core/worker_task.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "core/trace.h"

namespace funcpipe {
namespace {

using testing::HasSubstr;

WorkerTask example_task() {
  WorkerTask task;
  task.run = "runs/a";
  task.store = "file:///tmp/store";
  task.job = JobSpec::from_config(ConfigNode::from_text(
      "{model: {builtin: mlp}, data: {train: d}, training: {batch_size: 4}}", "job"));
  task.plan.stages = stages_from_cuts({2}, 4, {512});
  task.plan.replicas = 2;
  task.worker = {1, 1};
  task.attempt = 3;
  task.step = 40;
  return task;
}

template <typename Run>
void expect_error(ErrorCode code, std::string_view text, Run run) {
  try {
    run();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
  }
}

TEST(WorkerTaskTest, ReadsBackWhatItWrites) {
  const auto task = example_task();
  const auto read = WorkerTask::from_text(task.to_json().dump());
  EXPECT_EQ(read.to_json(), task.to_json());
  EXPECT_EQ(read.job, task.job);
  EXPECT_EQ(read.plan, task.plan);
}

TEST(WorkerTaskTest, WhatIsNoTaskIsRejected) {
  const auto reading = [](nlohmann::json change) {
    return [change] {
      auto json = example_task().to_json();
      json.merge_patch(change);
      WorkerTask::from_text(json.dump());
    };
  };
  expect_error(ErrorCode::kInvalidArgument, "stage", reading({{"stage", 2}}));
  expect_error(ErrorCode::kInvalidArgument, "replica", reading({{"replica", -1}}));
  expect_error(ErrorCode::kInvalidArgument, "'run' is missing", reading({{"run", nullptr}}));
  expect_error(ErrorCode::kInvalidArgument, "extra", reading({{"extra", 1}}));
  expect_error(ErrorCode::kInvalidArgument, "payload:1", [] { WorkerTask::from_text("{\"a\""); });
}

TEST(WorkerReportTest, ReadsBackWhatItWrites) {
  WorkerReport report;
  report.status = WorkerReport::Status::kContinue;
  report.next_step = 12;
  report.usage = {.puts = 1, .gets = 2, .misses = 3, .heads = 4, .bytes_up = 5};
  report.compute_seconds = 0.25;
  EXPECT_EQ(WorkerReport::from_text(report.to_json().dump()).to_json(), report.to_json());
  expect_error(ErrorCode::kDataLoss, "report", [] { WorkerReport::from_text("{}"); });
}

TEST(RecordsTest, ReadBackWhatTheyWrite) {
  const std::vector<StepRecord> steps = {{7, 1.5, 3, 4, 0.1, 123}, {8, 0.1, 4, 4, 0.1, 456}};
  EXPECT_EQ(to_text(step_records_from_text(to_text(steps))), to_text(steps));
  const EvaluationRecord evaluation{9, 2.5, 3, 10};
  EXPECT_EQ(to_text(evaluation_record_from_text(to_text(evaluation))), to_text(evaluation));
  expect_error(ErrorCode::kDataLoss, "step records", [] { step_records_from_text("[[1]]"); });
  expect_error(ErrorCode::kDataLoss, "evaluation", [] { evaluation_record_from_text("no"); });
}

TEST(TraceTest, ReadsBackWhatItWrites) {
  const WorkerTrace trace{
      {1, 0}, 2, {{0, "forward", 3, 10, 20}, {1, "send", 3, 20, 25}, {0, "forward", 4, 30, 40}}};
  const auto text = to_text(trace);
  EXPECT_EQ(to_text(worker_trace_from_text(text)), text);
  EXPECT_EQ(worker_trace_from_text(text).events[2].name, "forward");
  expect_error(ErrorCode::kDataLoss, "trace", [] { worker_trace_from_text("{\"stage\": 1}"); });
}

TEST(UsageTest, AddsAndSubtracts) {
  const StoreUsage a{.puts = 1,
                     .gets = 2,
                     .misses = 3,
                     .heads = 4,
                     .lists = 5,
                     .removes = 6,
                     .bytes_up = 7,
                     .bytes_down = 8};
  auto sum = a;
  sum += a;
  EXPECT_EQ(sum.bytes_down, 16U);
  EXPECT_EQ(sum - a, a);
  EXPECT_EQ(StoreUsage::from_json(a.to_json()), a);
}

}  // namespace
}  // namespace funcpipe

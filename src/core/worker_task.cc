#include "core/worker_task.h"

#include "base/error.h"

namespace funcpipe {
namespace {

// Records that our own programs write: whatever is wrong with one is damage, not user input.
template <typename Read>
auto read_json(std::string_view text, std::string_view what, Read read) {
  try {
    return read(nlohmann::json::parse(text));
  } catch (const nlohmann::json::exception& error) {
    fail(ErrorCode::kDataLoss, "{} cannot be read: {}", what, error.what());
  }
}

}  // namespace

nlohmann::json WorkerTask::to_json() const {
  return {{"funcpipe_task", 1},
          {"run", run},
          {"store", store},
          {"job", job.to_json()},
          {"plan", plan.to_json()},
          {"stage", worker.stage},
          {"replica", worker.replica},
          {"attempt", attempt},
          {"step", step}};
}

WorkerTask WorkerTask::from_text(std::string_view text) {
  ConfigReader reader(ConfigNode::from_text(text, "payload"));
  if (reader.required<std::int64_t>("funcpipe_task") != 1)
    reader.reject("funcpipe_task", "unknown version");
  WorkerTask task;
  task.run = reader.required<std::string>("run");
  task.store = reader.required<std::string>("store");
  task.job = JobSpec::from_config(reader.required_node("job"));
  task.plan = Plan::from_config(reader.required_node("plan"));
  task.worker.stage = static_cast<int>(reader.required<std::int64_t>("stage"));
  task.worker.replica = static_cast<int>(reader.required<std::int64_t>("replica"));
  task.attempt = static_cast<int>(reader.required<std::int64_t>("attempt"));
  task.step = reader.required<std::int64_t>("step");
  reader.finish();
  if (task.worker.stage < 0 || task.worker.stage >= task.plan.stage_count())
    reader.reject("stage", "not in the plan");
  if (task.worker.replica < 0 || task.worker.replica >= task.plan.replicas)
    reader.reject("replica", "not in the plan");
  return task;
}

nlohmann::json WorkerReport::to_json() const {
  return {{"status", status == Status::kDone ? "done" : "continue"},
          {"next_step", next_step},
          {"usage", usage.to_json()},
          {"compute_seconds", compute_seconds},
          {"trace_events_dropped", trace_events_dropped}};
}

WorkerReport WorkerReport::from_text(std::string_view text) {
  return read_json(text, "a worker's report", [](const nlohmann::json& json) {
    WorkerReport report;
    report.status = json.at("status") == "done" ? Status::kDone : Status::kContinue;
    report.next_step = json.at("next_step");
    report.usage = StoreUsage::from_json(json.at("usage"));
    report.compute_seconds = json.at("compute_seconds");
    report.trace_events_dropped = json.at("trace_events_dropped");
    return report;
  });
}

std::string to_text(const std::vector<StepRecord>& records) {
  auto list = nlohmann::json::array();
  for (const auto& record : records) {
    list.push_back({record.step, record.loss_sum, record.correct, record.samples,
                    record.learning_rate, record.end_unix_ns, record.puts, record.gets});
  }
  return list.dump();
}

std::vector<StepRecord> step_records_from_text(std::string_view text) {
  return read_json(text, "a batch of step records", [](const nlohmann::json& json) {
    std::vector<StepRecord> records;
    for (const auto& item : json) {
      records.push_back({item.at(0), item.at(1), item.at(2), item.at(3), item.at(4), item.at(5),
                         item.at(6), item.at(7)});
    }
    return records;
  });
}

std::string to_text(const EvaluationRecord& record) {
  return nlohmann::json{record.step, record.loss_sum, record.correct, record.samples}.dump();
}

EvaluationRecord evaluation_record_from_text(std::string_view text) {
  return read_json(text, "an evaluation record", [](const nlohmann::json& json) {
    return EvaluationRecord{json.at(0), json.at(1), json.at(2), json.at(3)};
  });
}

}  // namespace funcpipe

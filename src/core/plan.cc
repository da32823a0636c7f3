#include "core/plan.h"

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kVersion = 1;

StagePlan read_stage(const ConfigNode& node, int first_layer) {
  ConfigReader reader(node);
  const StagePlan stage{reader.required<int>("first_layer"), reader.required<int>("last_layer"),
                        reader.required<int>("memory_mb")};
  reader.finish();
  if (stage.first_layer != first_layer || stage.last_layer <= stage.first_layer) {
    node.reject(
        fmt::format("a stage must begin at layer {} and hold at least one layer", first_layer));
  }
  if (stage.memory_mb < 1) reader.reject("memory_mb", "must be at least 1");
  return stage;
}

}  // namespace

std::string_view to_string(AllReduceAlgorithm algorithm) {
  return algorithm == AllReduceAlgorithm::kThreePhase ? "three-phase" : "pipelined";
}

AllReduceAlgorithm all_reduce_algorithm_from_config(const ConfigNode& node) {
  const auto name = node.as<std::string>();
  for (const auto algorithm : {AllReduceAlgorithm::kThreePhase, AllReduceAlgorithm::kPipelined}) {
    if (name == to_string(algorithm)) return algorithm;
  }
  node.reject(fmt::format("unknown all-reduce '{}'; known are three-phase and pipelined", name));
}

std::vector<WorkerId> Plan::workers() const {
  std::vector<WorkerId> result;
  for (int stage = 0; stage < stage_count(); ++stage) {
    for (int replica = 0; replica < replicas; ++replica) result.push_back({stage, replica});
  }
  return result;
}

std::vector<StagePlan> stages_from_cuts(const std::vector<int>& cuts, int layers,
                                        const std::vector<int>& memory_mb) {
  const auto count = cuts.size() + 1;
  if (memory_mb.size() != 1 && memory_mb.size() != count) {
    fail(ErrorCode::kInvalidArgument,
         "{} memory sizes for {} stages; give one for all or one for each", memory_mb.size(),
         count);
  }
  std::vector<StagePlan> stages;
  int first = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const int last = i < cuts.size() ? cuts[i] : layers;
    if (last <= first || last > layers || (i < cuts.size() && last == layers)) {
      fail(ErrorCode::kInvalidArgument,
           "cut {} is out of range: a cut is the index of the layer that begins the next stage, "
           "here 1 to {}, in increasing order",
           last, layers - 1);
    }
    stages.push_back({first, last, memory_mb.size() == 1 ? memory_mb[0] : memory_mb[i]});
    first = last;
  }
  return stages;
}

std::vector<int> even_cuts(int layers, int stages) {
  if (stages < 1 || stages > layers) {
    fail(ErrorCode::kInvalidArgument, "{} stages do not fit a model of {} layers; choose 1 to {}",
         stages, layers, layers);
  }
  std::vector<int> cuts;
  for (int i = 1; i < stages; ++i)
    cuts.push_back(static_cast<int>(static_cast<std::int64_t>(i) * layers / stages));
  return cuts;
}

Plan Plan::from_config(const ConfigNode& node) {
  ConfigReader reader(node);
  if (const auto version = reader.required<std::int64_t>("funcpipe_plan"); version != kVersion) {
    reader.reject("funcpipe_plan",
                  fmt::format("version {} of the format is not known; this build reads version {}",
                              version, kVersion));
  }
  Plan plan;
  for (const auto& item : reader.required_node("stages").items()) {
    plan.stages.push_back(
        read_stage(item, plan.stages.empty() ? 0 : plan.stages.back().last_layer));
  }
  if (plan.stages.empty()) reader.reject("stages", "a plan needs at least one stage");
  plan.replicas = reader.required<int>("replicas");
  if (plan.replicas < 1) reader.reject("replicas", "must be at least 1");
  plan.all_reduce = all_reduce_algorithm_from_config(reader.required_node("all_reduce"));
  reader.optional_node("made_by");  // how the planner came to it: for people
  reader.finish();
  return plan;
}

nlohmann::json Plan::to_json() const {
  auto list = nlohmann::json::array();
  for (const auto& stage : stages) {
    list.push_back({{"first_layer", stage.first_layer},
                    {"last_layer", stage.last_layer},
                    {"memory_mb", stage.memory_mb}});
  }
  return {{"funcpipe_plan", kVersion},
          {"stages", std::move(list)},
          {"replicas", replicas},
          {"all_reduce", std::string(to_string(all_reduce))}};
}

}  // namespace funcpipe

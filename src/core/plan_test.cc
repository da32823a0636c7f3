#include "core/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/rng.h"
#include "core/platform_spec.h"

namespace funcpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

template <typename Run>
std::string message_of(Run run) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

Plan plan_from(std::string_view text) {
  return Plan::from_config(ConfigNode::from_text(text, "plan.json"));
}

TEST(PlanTest, StagesFromCuts) {
  EXPECT_THAT(stages_from_cuts({3, 7}, 10, {512}),
              ElementsAre(StagePlan{0, 3, 512}, StagePlan{3, 7, 512}, StagePlan{7, 10, 512}));
  EXPECT_THAT(stages_from_cuts({}, 10, {512}), ElementsAre(StagePlan{0, 10, 512}));
  EXPECT_THAT(stages_from_cuts({1}, 2, {512, 1024}),
              ElementsAre(StagePlan{0, 1, 512}, StagePlan{1, 2, 1024}));
}

TEST(PlanTest, CutsOutOfRangeSayTheRange) {
  for (const auto& cuts : std::vector<std::vector<int>>{{0}, {10}, {11}, {-1}, {3, 3}, {5, 3}}) {
    EXPECT_THAT(message_of([&] { stages_from_cuts(cuts, 10, {512}); }),
                HasSubstr(fmt::format("cut {} is out of range", cuts.back())));
  }
  EXPECT_THAT(message_of([] {
                stages_from_cuts({3}, 10, {1, 2, 3});
              }),
              HasSubstr("3 memory sizes for 2 stages"));
}

TEST(PlanTest, EvenCuts) {
  EXPECT_THAT(even_cuts(10, 3), ElementsAre(3, 6));
  EXPECT_THAT(even_cuts(10, 1), ElementsAre());
  EXPECT_THAT(message_of([] { even_cuts(3, 4); }), HasSubstr("choose 1 to 3"));
  EXPECT_THAT(message_of([] { even_cuts(3, 0); }), HasSubstr("choose 1 to 3"));
  for (int layers = 1; layers < 40; ++layers) {
    for (int stages = 1; stages <= layers; ++stages) {
      for (const auto& stage : stages_from_cuts(even_cuts(layers, stages), layers, {1})) {
        const int size = stage.last_layer - stage.first_layer;
        EXPECT_TRUE(size == layers / stages || size == layers / stages + 1);
      }
    }
  }
}

TEST(PlanTest, WorkersStageByStage) {
  Plan plan;
  plan.stages = stages_from_cuts({1}, 2, {512});
  plan.replicas = 2;
  EXPECT_THAT(plan.workers(),
              ElementsAre(WorkerId{0, 0}, WorkerId{0, 1}, WorkerId{1, 0}, WorkerId{1, 1}));
  EXPECT_EQ(plan.workers()[2].text(), "1.0");
}

TEST(PlanTest, ReadsBackWhatItWrites) {
  Rng rng(3);
  for (int round = 0; round < 100; ++round) {
    Plan plan;
    const int layers = static_cast<int>(1 + rng.below(50));
    const int stages = static_cast<int>(1 + rng.below(static_cast<std::uint64_t>(layers)));
    plan.stages = stages_from_cuts(even_cuts(layers, stages), layers,
                                   {static_cast<int>(128 + rng.below(10'000))});
    plan.replicas = static_cast<int>(1 + rng.below(9));
    plan.all_reduce =
        rng.below(2) == 0 ? AllReduceAlgorithm::kThreePhase : AllReduceAlgorithm::kPipelined;
    EXPECT_EQ(plan_from(plan.to_json().dump(2)), plan);
  }
}

TEST(PlanTest, BadPlansNameTheirFault) {
  const auto message = [](nlohmann::json change) {
    nlohmann::json json = {
        {"funcpipe_plan", 1},
        {"stages", {{{"first_layer", 0}, {"last_layer", 2}, {"memory_mb", 512}}}},
        {"replicas", 2},
        {"all_reduce", "pipelined"}};
    json.merge_patch(change);
    return message_of([&] { plan_from(json.dump(2)); });
  };
  const auto stages = [](int first, int last, int memory_mb) {
    return nlohmann::json{
        {"stages",
         {{{"first_layer", 0}, {"last_layer", 2}, {"memory_mb", 512}},
          {{"first_layer", first}, {"last_layer", last}, {"memory_mb", memory_mb}}}}};
  };
  EXPECT_THAT(message({{"funcpipe_plan", 2}}), HasSubstr("version 2 of the format is not known"));
  EXPECT_THAT(message({{"funcpipe_plan", nullptr}}), HasSubstr("'funcpipe_plan' is missing"));
  EXPECT_THAT(message({{"replicas", 0}}), HasSubstr("plan.json:"));
  EXPECT_THAT(message({{"replicas", 4294967297}}), HasSubstr("replicas: must be within"));
  EXPECT_THAT(message({{"all_reduce", "ring"}}), HasSubstr("unknown all-reduce 'ring'"));
  EXPECT_THAT(message({{"replica", 2}}), HasSubstr("did you mean 'replicas'?"));
  EXPECT_THAT(message({{"stages", nlohmann::json::array()}}), HasSubstr("at least one stage"));
  EXPECT_THAT(message(stages(3, 4, 512)), HasSubstr("stages[1]: a stage must begin at layer 2"));
  EXPECT_THAT(message(stages(2, 2, 512)), HasSubstr("hold at least one layer"));
  EXPECT_THAT(message(stages(2, 3, 0)), HasSubstr("stages[1].memory_mb: must be at least 1"));
}

TEST(PlatformSpecTest, SharesOfAFunction) {
  const auto spec = aws_lambda_spec();
  EXPECT_EQ(vcpus(spec, 1769), 1.0);
  EXPECT_EQ(thread_count(spec, 128), 1);
  EXPECT_EQ(thread_count(spec, 1769), 1);
  EXPECT_EQ(thread_count(spec, 1770), 2);
  EXPECT_EQ(thread_count(spec, 10240), 6);
  EXPECT_EQ(gb_seconds(2048, std::chrono::milliseconds(1500)), 3.0);
}

}  // namespace
}  // namespace funcpipe

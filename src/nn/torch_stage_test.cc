#include "nn/torch_stage.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/builtin_model.h"
#include "nn/pipeline_fixture.h"

namespace funcpipe {
namespace {

using Kind = OptimizerSpec::Kind;

JobSpec small_job(Kind kind) {
  JobSpec job;
  job.seed = 7;
  job.training.batch_size = 11;  // micro-batches of 4, 4 and 3
  job.training.micro_batch_size = 4;
  job.training.steps = 4;
  job.training.optimizer.kind = kind;
  job.training.optimizer.learning_rate = kind == Kind::kSgd ? 0.05 : 0.002;
  job.training.optimizer.momentum = kind == Kind::kSgd ? 0.9 : 0;
  job.training.optimizer.weight_decay = 0.01;
  return job;
}

struct Model {
  std::string name;
  nlohmann::json options;
  Shape image;
  std::vector<int> cut, two_cuts;
};

const Model kLenet{"lenet", {{"channels", {4, 6}}, {"hidden", {16}}}, {1, 28, 28}, {4}, {2, 6}};
const Model kMlp{"mlp", {{"hidden", {24, 16}}, {"dropout", 0.3}}, {1, 28, 28}, {3}, {2, 5}};
const Model kResnet{"resnet-small",
                    {{"image", {3, 8, 8}}, {"channels", {4, 6}}, {"blocks", 1}},
                    {3, 8, 8},
                    {4},
                    {1, 5}};
const Model kTuples{"resnet-small",
                    {{"image", {3, 8, 8}}, {"channels", {4, 6}}, {"blocks", 1}, {"skip", "tuple"}},
                    {3, 8, 8},
                    {4},  // right after the fork: the tuple holds one tensor twice
                    {7, 13}};

class EveryModel : public testing::TestWithParam<std::pair<Model, Kind>> {};

TEST_P(EveryModel, SplitsGiveTheBitsOfTheWholeModel) {
  const auto& [model, kind] = GetParam();
  const auto archive = build_builtin_model(model.name, model.options, 3);
  const auto data = TestDataset::images(model.image, 30, 10, 5);
  const auto job = small_job(kind);
  const auto whole = run_training(archive, job, data, {}, 1, 4);
  for (const auto& cuts : {model.cut, model.two_cuts}) {
    const auto split = run_training(archive, job, data, cuts, 1, 4);
    EXPECT_EQ(split.losses, whole.losses);
    EXPECT_EQ(split.weights, whole.weights);
  }
  EXPECT_LT(whole.losses.back(), 4);
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryModel,
    testing::Values(std::pair(kLenet, Kind::kSgd), std::pair(kLenet, Kind::kAdam),
                    std::pair(kMlp, Kind::kSgd), std::pair(kMlp, Kind::kAdamW),
                    std::pair(kResnet, Kind::kSgd), std::pair(kResnet, Kind::kAdam),
                    std::pair(kTuples, Kind::kSgd), std::pair(kTuples, Kind::kAdamW)));

}  // namespace
}  // namespace funcpipe

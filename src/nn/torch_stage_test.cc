#include "nn/torch_stage.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "nn/builtin_model.h"
#include "nn/pipeline_fixture.h"

namespace funcpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
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

TEST_P(EveryModel, RecomputationAndSegmentsChangeNoBit) {
  const auto& [model, kind] = GetParam();
  const auto archive = build_builtin_model(model.name, model.options, 3);
  const auto data = TestDataset::images(model.image, 30, 10, 5);
  const auto job = small_job(kind);
  for (const auto& cuts : {std::vector<int>{}, model.cut}) {
    TestPipeline plain(archive, job, cuts, 2);
    const auto losses = plain.train(data, 0, 3);
    for (const bool recompute : {false, true}) {
      for (const int segment_layers : {0, 1, 3}) {
        TestPipeline other(archive, job, cuts, 2, segment_layers);
        other.recompute = recompute;
        EXPECT_EQ(other.train(data, 0, 3), losses);
        EXPECT_EQ(other.weights(), plain.weights())
            << model.name << " recompute " << recompute << " segments of " << segment_layers;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EveryModel,
    testing::Values(std::pair(kLenet, Kind::kSgd), std::pair(kLenet, Kind::kAdam),
                    std::pair(kMlp, Kind::kSgd), std::pair(kMlp, Kind::kAdamW),
                    std::pair(kResnet, Kind::kSgd), std::pair(kResnet, Kind::kAdam),
                    std::pair(kTuples, Kind::kSgd), std::pair(kTuples, Kind::kAdamW)));

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

NamedTensors merged(const std::vector<NamedTensors>& states) {
  NamedTensors all;
  for (const auto& state : states) {
    all.tensors.insert(all.tensors.end(), state.tensors.begin(), state.tensors.end());
  }
  return all;
}

class EveryOptimizer : public testing::TestWithParam<Kind> {};

// After two steps the state moves to a pipeline that is cut elsewhere, and training goes on as if
// nothing had happened.
TEST_P(EveryOptimizer, StateResumesOnOtherStages) {
  const auto archive = build_builtin_model(kTuples.name, kTuples.options, 3);
  const auto data = TestDataset::images(kTuples.image, 30, 10, 5);
  const auto job = small_job(GetParam());
  const auto whole = run_training(archive, job, data, {}, 1, 4);
  TestPipeline first(archive, job, kTuples.cut);
  first.train(data, 0, 2);
  const auto states = first.states();
  first.train(data, 2, 3);  // a state is a snapshot: this does not change it
  TestPipeline second(archive, job, kTuples.two_cuts);
  second.load(merged(states));
  second.train(data, 2, 4);
  EXPECT_EQ(second.weights(), whole.weights);
}

INSTANTIATE_TEST_SUITE_P(All, EveryOptimizer,
                         testing::Values(Kind::kSgd, Kind::kAdam, Kind::kAdamW));

class LenetStage : public testing::Test {
 protected:
  TestPipeline make(const std::vector<int>& cuts) { return {archive_, job_, cuts}; }
  static MicroBatchContext context(std::int64_t count, int index = 0) {
    return {0, {index, 0, count}, count, true};
  }

  ModelArchive archive_ = build_builtin_model(kLenet.name, kLenet.options, 3);
  TestDataset data_ = TestDataset::images({1, 28, 28}, 12, 10, 5);
  JobSpec job_ = small_job(Kind::kSgd);
};

TEST_F(LenetStage, StateThatDoesNotFitIsNamed) {
  auto pipeline = make({});
  auto state = pipeline.stage(0).state();
  state.tensors.front().tensor.shape = {1};
  EXPECT_THAT(error_of([&] { pipeline.load(state); }), HasSubstr("'0.weight' with shape [1]"));
  state.tensors.erase(state.tensors.begin());
  EXPECT_THAT(error_of([&] { pipeline.load(state); }), HasSubstr("lacks '0.weight'"));
}

TEST_F(LenetStage, StateWithHalfAnOptimizerIsRefused) {
  job_ = small_job(Kind::kAdam);
  auto pipeline = make({});
  pipeline.train(data_, 0, 1);
  auto state = pipeline.stage(0).state();
  std::erase_if(state.tensors,
                [](const auto& named) { return named.name == "optimizer/exp_avg/3.bias"; });
  EXPECT_THAT(error_of([&] { pipeline.load(state); }), HasSubstr("optimizer/exp_avg/3.bias"));
}

TEST_F(LenetStage, TargetsOutOfRangeAreNamed) {
  reinterpret_cast<std::int64_t*>(data_.targets.data())[5] = 10;
  auto pipeline = make({});
  EXPECT_THAT(error_of([&] { pipeline.train(data_, 0, 2); }),
              AllOf(HasSubstr("target 10"), HasSubstr("0 to 9")));
}

TEST_F(LenetStage, RecordsOfAnotherShapeAreNamed) {
  data_ = TestDataset::images({1, 20, 20}, 12, 10, 5);
  auto pipeline = make({});
  EXPECT_THAT(error_of([&] { pipeline.train(data_, 0, 1); }),
              AllOf(HasSubstr("[1, 20, 20]"), HasSubstr("[1, 28, 28]")));
}

TEST_F(LenetStage, BoundaryOfAnotherShapeNamesTheLayerInOneLine) {
  auto pipeline = make({7});
  const auto records = TestDataset::images({9}, 4, 10, 5);
  const auto message = error_of([&] {
    pipeline.stage(1).forward_loss(context(4), records.read_inputs({0, 1, 2, 3}),
                                   records.read_targets({0, 1, 2, 3}));
  });
  EXPECT_THAT(message,
              AllOf(HasSubstr("layer 7 ('7', Linear) on [4, 9]"), testing::Not(HasSubstr("\n"))));
}

TEST_F(LenetStage, SegmentsBeginWhereTheirGradientsDo) {
  auto options = torch_stage_options(archive_, 0, archive_.layer_count(), job_, 1);
  options.segment_cuts = {3, 7};
  const auto stage = make_torch_stage(options);
  const auto& layers = archive_.manifest().layers;
  const auto values = [&](std::size_t first, std::size_t last) {
    std::int64_t count = 0;
    for (auto i = first; i < last; ++i) count += layers[i].parameter_count();
    return static_cast<std::size_t>(count);
  };
  EXPECT_EQ(stage->segment_begins(), (std::vector<std::size_t>{values(0, 7), values(0, 3), 0}));
}

TEST_F(LenetStage, BackwardNeedsItsForward) {
  auto pipeline = make({});
  EXPECT_THAT(error_of([&] { pipeline.stage(0).backward(context(4, 3), {}); }),
              HasSubstr("micro-batch 3"));
}

TEST_F(LenetStage, EvaluationKeepsNothingAndChangesNothing) {
  auto pipeline = make({4});
  const auto before = pipeline.weights();
  const auto sums = pipeline.evaluate(data_);
  EXPECT_EQ(sums.samples, 12);
  EXPECT_LE(sums.correct, 12);
  EXPECT_NEAR(sums.loss / 12, std::log(10), 0.3);
  EXPECT_EQ(pipeline.weights(), before);
  EXPECT_THAT(error_of([&] { pipeline.stage(1).backward(context(4), {}); }),
              HasSubstr("without its forward"));
}

// Only what the sender wants is sent back.
TEST_F(LenetStage, InputsWithoutGradientGetNone) {
  auto pipeline = make({4});
  const auto train = [&](bool wanted) {
    auto& last = pipeline.stage(1);
    last.begin_step();
    auto boundary = pipeline.stage(0).forward(context(4), data_.read_inputs({0, 1, 2, 3}));
    EXPECT_TRUE(boundary.tensors.front().requires_grad);
    boundary.tensors.front().requires_grad = wanted;
    last.forward_loss(context(4), std::move(boundary), data_.read_targets({0, 1, 2, 3}));
    return last.backward(context(4), {});
  };
  EXPECT_TRUE(train(true).tensors.front().present);
  EXPECT_FALSE(train(false).tensors.front().present);
}

TEST_F(LenetStage, NormalisationThatDoesNotFitIsRefused) {
  job_.data.mean = job_.data.scale = {1, 2};
  EXPECT_THAT(error_of([&] { make({}); }), HasSubstr("give one value, or 1"));
}

// The same tensor twice in a tuple crosses the cut once.
TEST(TupleStage, AliasesAreSentOnce) {
  const auto archive = build_builtin_model(kTuples.name, kTuples.options, 3);
  TestPipeline pipeline(archive, small_job(Kind::kSgd), kTuples.cut);
  const auto data = TestDataset::images(kTuples.image, 4, 10, 5);
  const auto bundle =
      pipeline.stage(0).forward({0, {0, 0, 4}, 4, true}, data.read_inputs({0, 1, 2, 3}));
  ASSERT_EQ(bundle.tensors.size(), 2U);
  EXPECT_EQ(bundle.tensors[1].alias_of, 0);
  EXPECT_TRUE(bundle.tensors[1].data.empty());
}

// Replicas with the same data change buffers as one of them does; unequal shares weigh by samples.
TEST(BatchNormStage, ReplicasAgreeOnBuffers) {
  const auto archive = build_builtin_model(kResnet.name, kResnet.options, 3);
  const auto data = TestDataset::images(kResnet.image, 30, 10, 5);
  TestPipeline pipeline(archive, small_job(Kind::kSgd), kResnet.cut, 3);
  pipeline.train(data, 0, 3);
  for (std::size_t stage = 0; stage < 2; ++stage) {
    const auto first = pipeline.stage(stage, 0).weights();
    const auto second = pipeline.stage(stage, 2).weights();
    for (std::size_t i = 0; i < first.tensors.size(); ++i) {
      if (first.tensors[i].name.ends_with("num_batches_tracked")) continue;
      EXPECT_EQ(as_text(first.tensors[i].tensor.data), as_text(second.tensors[i].tensor.data))
          << first.tensors[i].name;
    }
  }
}

}  // namespace
}  // namespace funcpipe

#include "nn/layer_profiler.h"

#include <numeric>

#include <gtest/gtest.h>

#include "nn/builtin_model.h"
#include "nn/pipeline_fixture.h"
#include "nn/synthetic_bundle.h"

namespace funcpipe {
namespace {

constexpr std::int64_t kSamples = 2;

JobSpec adam_job() {
  JobSpec job;
  job.data.mean = {0.5};
  job.data.scale = {0.25};
  job.training.optimizer.kind = OptimizerSpec::Kind::kAdam;
  return job;
}

std::uint64_t plain_bytes(const TensorBundle& bundle) {
  std::uint64_t bytes = 0;
  for (const auto& tensor : bundle.tensors) bytes += tensor.data.size();
  return bytes;
}

// A chain of stages of one model, each on what the one before gave.
class LayerProfilerTest : public testing::Test {
 protected:
  void use(const std::string& model, const nlohmann::json& options = nlohmann::json::object()) {
    archive_ = std::make_unique<ModelArchive>(build_builtin_model(model, options, 1));
    data_ = TestDataset::images(archive_->manifest().inputs[0].shape, kSamples, 4, 1);
  }

  LayerProfiler profiler(int first, int last, TensorBundle input) {
    LayerProfilerOptions options;
    options.stage = torch_stage_options(*archive_, first, last, adam_job(), 1);
    options.samples = kSamples;
    options.micro_batches = 2;
    options.wire_bytes = plain_bytes;
    const bool is_last = last == archive_->layer_count();
    return {std::move(options), std::move(input),
            is_last ? data_.read_targets({0, 1}) : TensorBundle{}};
  }
  LayerProfiler profiler() { return profiler(0, archive_->layer_count(), inputs()); }
  TensorBundle inputs() { return data_.read_inputs({0, 1}); }

  std::uint64_t output_bytes(int layer) const {
    return kSamples *
           archive_->manifest().layers.at(static_cast<std::size_t>(layer)).output_bytes();
  }

  std::unique_ptr<ModelArchive> archive_;
  TestDataset data_;
};

double forward_of(const ProfilingRound& round) {
  return std::accumulate(round.layers.begin(), round.layers.end(), 0.0,
                         [](double sum, const auto& layer) { return sum + layer.forward; });
}

// Convolution, ReLU, pooling, the same again, flatten, linear, ReLU, linear.
TEST_F(LayerProfilerTest, ActivationsAreWhatAutogradKeeps) {
  use("lenet");
  auto whole = profiler();
  EXPECT_TRUE(whole.first_pass().tensors.empty());
  const auto bytes = whole.measure_bytes();
  ASSERT_EQ(bytes.size(), 10U);
  EXPECT_EQ(bytes[0].activation, kSamples * 28 * 28 * sizeof(float));  // the normalised input
  EXPECT_EQ(bytes[1].activation, output_bytes(1));  // ReLU keeps its output, for the pooling too
  EXPECT_EQ(bytes[2].activation, 3 * output_bytes(2));  // pooling: output and 64-bit positions
  EXPECT_EQ(bytes[3].activation, 0U);  // the convolution keeps its input, which is the pooling's
  EXPECT_EQ(bytes[6].activation, 0U);  // a view
  for (std::size_t i = 0; i < bytes.size(); ++i)
    EXPECT_EQ(bytes[i].output, output_bytes(static_cast<int>(i))) << i;
  // Gradients of its input and weights at least; two temporaries of the optimiser.
  EXPECT_GE(bytes[3].workspace, output_bytes(2));
  const auto& weight = archive_->manifest().layers[7].parameters[0];
  EXPECT_GE(bytes[7].workspace,
            2 * sizeof(float) * static_cast<std::uint64_t>(element_count(weight.shape)));
}

TEST_F(LayerProfilerTest, CutsDoNotChangeWhatLayersKeepOrSend) {
  use("resnet-small", {{"image", {3, 8, 8}},
                       {"channels", {4, 8}},
                       {"blocks", 1},
                       {"skip", "tuple"},
                       {"classes", 4}});
  auto whole = profiler();
  whole.first_pass();
  const auto expected = whole.measure_bytes();
  const int layers = archive_->layer_count();
  auto input = inputs();
  int first = 0;
  for (const int last : {3, 5, 9, layers}) {
    auto part = profiler(first, last, input);
    auto output = part.first_pass();
    const auto bytes = part.measure_bytes();
    for (int i = first; i < last; ++i) {
      const auto& found = bytes[static_cast<std::size_t>(i - first)];
      const auto& same = expected[static_cast<std::size_t>(i)];
      EXPECT_EQ(found.output, same.output) << i;
      // What a stage sends is kept until it is sent, whether the next layer needs it or not.
      if (i + 1 < last) {
        EXPECT_EQ(found.activation, same.activation) << i;
      }
    }
    input = std::move(output);
    first = last;
  }
}

TEST_F(LayerProfilerTest, TimesTellLargeLayersFromSmallOnes) {
  use("mlp", {{"inputs", {1, 16, 16}}, {"hidden", {1024, 1024}}, {"classes", 4}});
  auto whole = profiler();
  whole.first_pass();
  whole.measure_round(Duration::zero());
  const auto round = whole.measure_round(std::chrono::milliseconds(50));
  ASSERT_EQ(round.layers.size(), 6U);  // flatten, linear, ReLU, linear, ReLU, linear
  EXPECT_EQ(round.stretch, 1);
  const auto& large = round.layers[3];
  for (const std::size_t small : {0, 2, 4, 5}) {
    EXPECT_GT(large.forward, 2 * round.layers[small].forward) << small;
    EXPECT_GT(large.backward, 2 * round.layers[small].backward) << small;
    EXPECT_GT(large.update, 2 * round.layers[small].update) << small;
  }
  EXPECT_GT(large.forward, 0.3 * forward_of(round));
  EXPECT_EQ(round.layers[2].update, 0);
}

// Flatten hands on what needs no gradient: its backward pass does not exist.
TEST_F(LayerProfilerTest, ALayerWithoutGradientTakesNoBackwardTime) {
  use("mlp", {{"inputs", {1, 16, 16}}, {"hidden", {256}}, {"classes", 4}});
  auto whole = profiler();
  whole.first_pass();
  const auto round = whole.measure_round(std::chrono::milliseconds(5));
  EXPECT_EQ(round.layers[0].backward, 0);
  EXPECT_GT(round.layers[1].backward, 0);
}

TEST_F(LayerProfilerTest, RunsOnSyntheticInput) {
  use("resnet-small", {{"image", {3, 8, 8}},
                       {"channels", {4, 8}},
                       {"blocks", 1},
                       {"skip", "tuple"},
                       {"classes", 4}});
  const auto& before = archive_->manifest().layers[3];
  ASSERT_TRUE(before.output_is_tuple);
  auto part = profiler(4, archive_->layer_count(),
                       synthetic_bundle(before.outputs, before.output_is_tuple, kSamples));
  part.first_pass();
  EXPECT_GT(forward_of(part.measure_round(Duration::zero())), 0);
}

TEST(SyntheticBundle, HasShapesAndTypesOfTheManifest) {
  const auto bundle =
      synthetic_bundle({{"", DType::kFloat32, {3, 2}}, {"", DType::kInt64, {5}}}, true, 4);
  ASSERT_EQ(bundle.tensors.size(), 2U);
  EXPECT_TRUE(bundle.is_tuple);
  EXPECT_EQ(bundle.tensors[0].shape, (Shape{4, 3, 2}));
  EXPECT_TRUE(bundle.tensors[0].requires_grad);
  EXPECT_EQ(bundle.tensors[1].shape, (Shape{4, 5}));
  EXPECT_FALSE(bundle.tensors[1].requires_grad);
  for (const auto byte : bundle.tensors[1].data) EXPECT_EQ(byte, std::byte{0});
}

}  // namespace
}  // namespace funcpipe

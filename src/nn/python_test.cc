// What C++ and Python have to agree on.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "data/safetensors.h"
#include "nn/builtin_model.h"
#include "nn/export_result.h"
#include "nn/model_check.h"
#include "nn/python_fixture.h"

namespace funcpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using Kind = OptimizerSpec::Kind;

class Python : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(has_torch_in_python())
        << "/usr/bin/python3 has no torch: scripts/deps.sh installs it";
  }
  const std::filesystem::path& path() const { return folder_.path(); }
  // Runs `code` after "import torch, funcpipe"; its output, which is empty when all is well.
  std::string run(const std::string& code) {
    write_python_module(path(), "script", "import torch, funcpipe\n" + code);
    return run_python(path(), {"script.py"}).output;
  }
  std::string export_model(const std::string& builder, const std::string& output,
                           const std::string& shape = "1,8,8") {
    return run_python(path(), {"-m", "funcpipe", "export", "models:" + builder, "-o", output,
                               "--input-shape", shape})
        .output;
  }
  void write_models() {
    write_python_module(path(), "models", R"(
from typing import Tuple
import torch
from torch import nn, Tensor

class Fork(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 3, 3, padding=1)
    def forward(self, x):
        return self.conv(x), x, torch.arange(x.shape[0])

class InPlace(nn.Module):
    def forward(self, x: Tuple[Tensor, Tensor, Tensor]):
        return torch.relu_(x[0]), x[1], x[2]

class Join(nn.Module):
    def forward(self, x: Tuple[Tensor, Tensor, Tensor]):
        return x[0] + x[1] + (x[2] * 0).reshape(-1, 1, 1, 1)

class Untyped(nn.Module):
    def forward(self, x):
        return x[0] + x[1]

class Several(nn.Module):
    def forward(self, a, b):
        return a + b

def tuples():
    return nn.Sequential(Fork(), InPlace(), Join(), nn.BatchNorm2d(3), nn.ReLU(inplace=True),
                         nn.Dropout(0.25), nn.Flatten(), nn.ReLU(inplace=True), nn.Linear(192, 10))
def untyped():
    return nn.Sequential(Fork(), Untyped(), nn.Flatten(), nn.Linear(192, 10))
def several():
    return nn.Sequential(Fork(), Several())
def function():
    return [nn.Flatten(), torch.relu]
def tied():
    layers = nn.Linear(64, 64), nn.Linear(64, 64)
    layers[1].weight = layers[0].weight
    return nn.Sequential(nn.Flatten(), *layers)
def half():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 3).half())
)");
  }

  TemporaryDirectory folder_;
};

JobSpec job_of(Kind kind) {
  JobSpec job;
  job.seed = 11;
  job.data.mean = {0.3};
  job.data.scale = {0.5};
  job.training.batch_size = 22;  // micro-batches of 5, 5, 5, 5, 2; the last batch has 8
  job.training.micro_batch_size = 5;
  job.training.steps = 6;
  job.training.optimizer.kind = kind;
  job.training.optimizer.learning_rate = kind == Kind::kSgd ? 0.05 : 0.003;
  job.training.optimizer.momentum = kind == Kind::kSgd ? 0.9 : 0;
  job.training.optimizer.weight_decay = 0.02;
  return job;
}

void expect_near(const std::vector<double>& losses, const std::vector<double>& expected) {
  ASSERT_EQ(losses.size(), expected.size());
  for (std::size_t i = 0; i < losses.size(); ++i) {
    EXPECT_NEAR(losses[i], expected[i], 1e-5 * std::abs(expected[i])) << "step " << i;
  }
}

// Trains both ways and compares losses and final weights.
void expect_agreement(const std::filesystem::path& folder, const ModelArchive& archive,
                      const JobSpec& job, const Shape& image, const std::vector<int>& cuts,
                      int replicas) {
  const auto data = TestDataset::images(image, 30, 10, 5);
  const auto expected = run_reference(folder, archive, job, data, replicas);
  TestPipeline pipeline(archive, job, cuts, replicas);
  expect_near(pipeline.train(data, 0, job.training.steps), expected);
  const auto weights = pipeline.named_weights();
  write_file(folder / "model.safetensors", write_safetensors(weights.tensors).parts);
  write_python_module(folder, "compare", R"(
import torch, funcpipe
ours, theirs = funcpipe.load_safetensors("model.safetensors"), torch.load("reference.pt")
assert ours.keys() == theirs.keys(), ours.keys() ^ theirs.keys()
for name in ours:
    torch.testing.assert_close(ours[name], theirs[name], rtol=1e-5, atol=1e-6, msg=name)
)");
  EXPECT_EQ(run_python(folder, {"compare.py"}).output, "");
}

TEST_F(Python, PlainLoopAgreesOnLenet) {
  const auto archive = build_builtin_model("lenet", {{"channels", {4, 6}}, {"hidden", {16}}}, 3);
  auto job = job_of(Kind::kSgd);
  job.training.clip_norm = 0.5;
  expect_agreement(path(), archive, job, {1, 28, 28}, {3, 7}, 1);
}

TEST_F(Python, PlainLoopAgreesWithBatchNormAndReplicas) {
  const nlohmann::json options = {{"image", {3, 8, 8}}, {"channels", {4, 6}}, {"blocks", 1}};
  expect_agreement(path(), build_builtin_model("resnet-small", options, 3), job_of(Kind::kSgd),
                   {3, 8, 8}, {4}, 2);
}

TEST_F(Python, PlainLoopAgreesWithTuplesAndAdam) {
  const nlohmann::json options = {
      {"image", {3, 8, 8}}, {"channels", {4, 6}}, {"blocks", 1}, {"skip", "tuple"}};
  auto job = job_of(Kind::kAdam);
  job.data.mean = {0.2, 0.3, 0.4};
  job.data.scale = {0.5, 0.6, 0.7};
  expect_agreement(path(), build_builtin_model("resnet-small", options, 3), job, {3, 8, 8}, {4, 13},
                   1);
}

TEST_F(Python, PlainLoopAgreesWithDropoutAndAdamW) {
  const auto archive = build_builtin_model("mlp", {{"hidden", {24}}, {"dropout", 0.4}}, 3);
  expect_agreement(path(), archive, job_of(Kind::kAdamW), {1, 28, 28}, {2}, 3);
}

TEST_F(Python, ExportedModelWithTuplesIntegersAndInPlaceLayersTrains) {
  write_models();
  ASSERT_THAT(export_model("tuples", "exported"), HasSubstr("9 layers"));
  const auto archive = open_model_archive(path() / "exported");
  check_model(archive);
  EXPECT_EQ(archive.manifest().layers[0].outputs[2].dtype, DType::kInt64);
  auto job = job_of(Kind::kSgd);
  const auto data = TestDataset::images({1, 8, 8}, 30, 10, 5);
  const auto whole = run_training(archive, job, data, {}, 1, 6);
  for (const auto& cuts : std::vector<std::vector<int>>{{1}, {2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}}) {
    const auto split = run_training(archive, job, data, cuts, 1, 6);
    EXPECT_EQ(split.losses, whole.losses);
    EXPECT_EQ(split.weights, whole.weights);
  }
  expect_near(whole.losses, run_reference(path(), archive, job, data, 1));
  expect_near(whole.losses,
              run_reference(path(), archive, job, data, 1, {"--eager", "models:tuples"}));
}

TEST_F(Python, UntypedTupleLayerIsTracedWithAWarning) {
  write_models();
  EXPECT_THAT(export_model("untyped", "exported"),
              AllOf(HasSubstr("layer 1 ('1', Untyped): was traced"), HasSubstr("annotate it"),
                    HasSubstr("4 layers")));
  const auto archive = open_model_archive(path() / "exported");
  EXPECT_EQ(archive.manifest().layers[1].export_method, "trace");
  check_model(archive);
  const auto data = TestDataset::images({1, 8, 8}, 30, 10, 5);
  const auto whole = run_training(archive, job_of(Kind::kSgd), data, {}, 1, 3);
  EXPECT_EQ(run_training(archive, job_of(Kind::kSgd), data, {1, 2}, 1, 3).weights, whole.weights);
}

TEST_F(Python, WhatCannotBeExportedIsNamed) {
  write_models();
  const auto output = run(R"(
import models
def attempt(model, channels=1):
    try:
        funcpipe.export(model, "out", torch.rand(2, channels, 8, 8))
    except funcpipe.ExportError as error:
        print(error)
attempt(models.several())
attempt(models.function())
attempt(models.tied())
attempt(models.half())
attempt(models.tuples(), channels=2)
attempt(torch.nn.Linear(3, 3))
)");
  EXPECT_THAT(output,
              AllOf(HasSubstr("layer 1 ('1', Several)"), HasSubstr("takes several arguments"),
                    HasSubstr("builtin_function_or_method, not an nn.Module"),
                    HasSubstr("'1.weight' and '2.weight'"),
                    HasSubstr("layer 1 ('1', Linear): 'weight' is torch.float16"),
                    HasSubstr("layer 0 ('0', Fork): cannot run on [2, 2, 8, 8]"),
                    HasSubstr("a Linear is not a chain of layers")));
  EXPECT_FALSE(std::filesystem::exists(path() / "out"));
  EXPECT_THAT(export_model("nothing", "out"), HasSubstr("error: 'models:nothing'"));
}

TEST_F(Python, LoadsTheResultAsTorchScriptAndAsWeights) {
  write_models();
  export_model("tuples", "exported");
  const auto archive = open_model_archive(path() / "exported");
  const auto data = TestDataset::images({1, 8, 8}, 30, 10, 5);
  TestPipeline pipeline(archive, job_of(Kind::kSgd), {2});
  pipeline.train(data, 0, 3);
  const auto weights = pipeline.named_weights();
  write_file(path() / "model.safetensors", write_safetensors(weights.tensors).parts);
  export_torchscript(archive, weights, path() / "model.pt");
  EXPECT_EQ(run(R"(
import models
whole = torch.jit.load("model.pt")
model = funcpipe.load_weights(models.tuples(), "model.safetensors").eval()
chain = funcpipe.load_weights(funcpipe.load("exported"), "model.safetensors").eval()
assert list(whole.state_dict()) == list(model.state_dict()) == list(chain.state_dict())
assert not whole.training
x = torch.rand(7, 1, 8, 8)
expected = model(x)
torch.testing.assert_close(whole(x), expected)
torch.testing.assert_close(chain(x), expected)
whole.train()
assert not torch.equal(whole(x), expected)
)"),
            "");
}

TEST_F(Python, BuiltinModelsComputeWhatTorchNnDoes) {
  write_model_archive(build_builtin_model("lenet", {{"dropout", 0.1}}, 3), path() / "lenet");
  write_model_archive(build_builtin_model("resnet-small", {{"blocks", 1}}, 3), path() / "resnet");
  EXPECT_EQ(run(R"(
from torch import nn
from torch.nn.functional import relu

class Shortcut(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(a, b, 1, stride, bias=False), nn.BatchNorm2d(b)
    def forward(self, x):
        return self.bn(self.conv(x))

class Block(nn.Module):
    def __init__(self, a, b, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(a, b, 3, stride, 1, bias=False), nn.BatchNorm2d(b)
        self.conv2, self.bn2 = nn.Conv2d(b, b, 3, 1, 1, bias=False), nn.BatchNorm2d(b)
        self.shortcut = Shortcut(a, b, stride) if a != b else nn.Identity()
    def forward(self, x):
        h = relu(self.bn1(self.conv1(x)))
        return relu(self.bn2(self.conv2(h)) + self.shortcut(x))

def check(name, model, x):
    ours = funcpipe.load(name)
    model.load_state_dict(ours.state_dict())
    for training in (False, True):
        ours.train(training), model.train(training)
        torch.manual_seed(1)
        expected = model(x)
        torch.manual_seed(1)
        torch.testing.assert_close(ours(x), expected)
    for name, value in ours.state_dict().items():
        torch.testing.assert_close(value, model.state_dict()[name])

check("lenet", nn.Sequential(
    nn.Conv2d(1, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 5), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(512, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 10)),
    torch.rand(4, 1, 28, 28))
check("resnet", nn.Sequential(
    nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
    Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)), torch.rand(4, 3, 32, 32))

# Initial values: the bounds of torch.nn's rule are reached, not passed.
weight = funcpipe.load("lenet").state_dict()["7.weight"]
bound = 512 ** -0.5
assert 0.99 * bound < weight.abs().max() <= bound and abs(weight.mean()) < 0.01 * bound
)"),
            "");
}

}  // namespace
}  // namespace funcpipe

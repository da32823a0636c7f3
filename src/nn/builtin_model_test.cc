#include "nn/builtin_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "core/memory_estimate.h"
#include "nn/model_check.h"
#include "nn/model_report.h"

namespace funcpipe {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string build_error(const std::string& name, const nlohmann::json& options) {
  return error_of([&] { build_builtin_model(name, options, 0); });
}

std::vector<std::string> kinds(const ModelArchive& archive) {
  std::vector<std::string> result;
  for (const auto& layer : archive.manifest().layers) result.push_back(layer.kind);
  return result;
}

TEST(BuiltinModel, LenetIsAChainOfUnmergedLayers) {
  const auto archive = build_builtin_model("lenet", {}, 1);
  EXPECT_THAT(kinds(archive),
              testing::ElementsAre("Conv2d", "ReLU", "MaxPool2d", "Conv2d", "ReLU", "MaxPool2d",
                                   "Flatten", "Linear", "ReLU", "Linear"));
  const auto& layers = archive.manifest().layers;
  EXPECT_EQ(layers[0].outputs.front().shape, (Shape{16, 24, 24}));
  EXPECT_EQ(layers[7].parameters.front().name, "weight");
  EXPECT_EQ(layers[7].parameters.front().shape, (Shape{128, 512}));
  EXPECT_EQ(layers.back().outputs.front().shape, Shape{10});
}

TEST(BuiltinModel, MlpTakesItsOptions) {
  const auto archive = build_builtin_model(
      "mlp",
      {{"inputs", 6}, {"hidden", {5, 4}}, {"classes", 3}, {"activation", "gelu"}, {"dropout", 0.5}},
      1);
  EXPECT_THAT(kinds(archive), testing::ElementsAre("Linear", "GELU", "Dropout", "Linear", "GELU",
                                                   "Dropout", "Linear"));
  EXPECT_EQ(archive.manifest().parameter_count(), 6 * 5 + 5 + 5 * 4 + 4 + 4 * 3 + 3);
}

TEST(BuiltinModel, ResnetAsTuplesHasTheParametersOfResnetAsBlocks) {
  const auto blocks = build_builtin_model("resnet-small", {}, 1);
  const auto tuples = build_builtin_model("resnet-small", {{"skip", "tuple"}}, 1);
  EXPECT_EQ(tuples.manifest().parameter_count(), blocks.manifest().parameter_count());
  EXPECT_TRUE(tuples.manifest().layers[3].output_is_tuple);
  EXPECT_EQ(tuples.manifest().layers[3].kind, "Fork");
  EXPECT_EQ(tuples.layer_count(), 3 + 6 * 7 + 3);
}

TEST(BuiltinModel, SeedAloneDecidesTheWeights) {
  const auto a = build_builtin_model("mlp", {}, 1), b = build_builtin_model("mlp", {}, 1);
  const auto c = build_builtin_model("mlp", {}, 2);
  EXPECT_EQ(a.layer_file(1).text(), b.layer_file(1).text());
  EXPECT_NE(a.layer_file(1).text(), c.layer_file(1).text());
}

TEST(BuiltinModel, WrongOptionsAreNamedWithTheNearestRightOne) {
  EXPECT_THAT(build_error("lenett", {}), HasSubstr("did you mean 'lenet'"));
  EXPECT_THAT(build_error("lenet", {{"chanels", 3}}),
              AllOf(HasSubstr("built-in model 'lenet'"), HasSubstr("did you mean 'channels'")));
  EXPECT_THAT(build_error("mlp", {{"hidden", {3, 0}}}), HasSubstr("at least 1"));
  EXPECT_THAT(build_error("mlp", {{"dropout", 1.5}}), HasSubstr("[0, 1)"));
  EXPECT_THAT(build_error("mlp", {{"activation", "rel"}}), HasSubstr("relu"));
  EXPECT_THAT(build_error("lenet", {{"image", {1, 8, 8}}}), HasSubstr("too small"));
  EXPECT_THAT(build_error("lenet", {{"image", {28, 28}}}), HasSubstr("3 values"));
  EXPECT_THAT(build_error("resnet-small", {{"blocks", {1, 2}}}), HasSubstr("one number, or 3"));
}

class ArchiveFolder : public testing::Test {
 protected:
  void SetUp() override { write_model_archive(build_builtin_model("mlp", {}, 1), path_); }
  void edit_manifest(const std::function<void(nlohmann::json&)>& edit) {
    auto json = nlohmann::json::parse(read_text_file(path_ / "manifest.json"));
    edit(json);
    write_file(path_ / "manifest.json", json.dump(1));
  }

  TemporaryDirectory folder_;
  std::filesystem::path path_ = folder_.path() / "model";
};

TEST_F(ArchiveFolder, RoundTrips) {
  const auto original = build_builtin_model("mlp", {}, 1);
  const auto archive = open_model_archive(path_);
  EXPECT_EQ(archive.manifest().to_json(), original.manifest().to_json());
  for (int i = 0; i < archive.layer_count(); ++i) {
    EXPECT_EQ(archive.layer_file(i).text(), original.layer_file(i).text());
  }
  check_model(archive);
}

TEST_F(ArchiveFolder, OpensAsZipWithAFolderInside) {
  const auto zip = folder_.path() / "model.zip";
  const auto command = "cd " + folder_.path().string() +
                       " && /usr/bin/python3 -c \"import shutil; "
                       "shutil.make_archive('model', 'zip', '.', 'model')\"";
  ASSERT_EQ(std::system(command.c_str()), 0);
  check_model(open_model_archive(zip));
}

TEST_F(ArchiveFolder, IsReplacedButNothingElseIs) {
  write_model_archive(build_builtin_model("lenet", {}, 1), path_);
  EXPECT_EQ(open_model_archive(path_).manifest().name, "lenet");
  const auto other = folder_.path() / "notes";
  write_file(other / "important.txt", std::string_view("text"));
  EXPECT_THAT(error_of([&] { write_model_archive(open_model_archive(path_), other); }),
              HasSubstr("not a model archive"));
  EXPECT_EQ(read_text_file(other / "important.txt"), "text");
}

TEST_F(ArchiveFolder, MissingAndDamagedPartsAreNamed) {
  EXPECT_THAT(error_of([&] { open_model_archive(folder_.path() / "none"); }), HasSubstr("none"));
  EXPECT_THAT(error_of([&] { open_model_archive(folder_.path()); }), HasSubstr("manifest.json"));
  write_file(path_ / "layer_001.pt", std::string_view("not a zip"));
  EXPECT_THAT(error_of([&] { check_model(open_model_archive(path_)); }),
              AllOf(HasSubstr("layer 1 ('1', Linear)"), HasSubstr("damaged")));
  std::filesystem::remove(path_ / "layer_001.pt");
  EXPECT_THAT(error_of([&] { open_model_archive(path_); }),
              AllOf(HasSubstr("layer_001.pt"), HasSubstr("layer 1"), HasSubstr("missing")));
}

TEST_F(ArchiveFolder, ManifestThatDoesNotFitTheFilesIsRefused) {
  edit_manifest([](auto& json) { json["layers"][1]["parameters"][0]["shape"] = {3, 3}; });
  EXPECT_THAT(error_of([&] { check_model(open_model_archive(path_)); }),
              AllOf(HasSubstr("layer 1"), HasSubstr("'weight' of shape [3, 3]")));
}

TEST_F(ArchiveFolder, LayersThatDoNotChainAreNamed) {
  edit_manifest([](auto& json) { json["inputs"][0]["shape"] = {1, 20, 20}; });
  EXPECT_THAT(error_of([&] { check_model(open_model_archive(path_)); }),
              HasSubstr("layer 0 ('0', Flatten) returns [2, 400] float32 for [2, 1, 20, 20]"));
  edit_manifest([](auto& json) {
    json["inputs"][0]["shape"] = {1, 28, 28};
    std::swap(json["layers"][1], json["layers"][3]);
  });
  EXPECT_THAT(error_of([&] { check_model(open_model_archive(path_)); }),
              AllOf(HasSubstr("layer 1 ('3', Linear)"), HasSubstr("[2, 784]")));
}

TEST_F(ArchiveFolder, FilesOutsideTheArchiveAreRefused) {
  edit_manifest([](auto& json) { json["layers"][0]["file"] = "../layer_000.pt"; });
  EXPECT_THAT(error_of([&] { open_model_archive(path_); }),
              HasSubstr("'../layer_000.pt' is not a path within the archive"));
}

TEST(ModelReport, ListsLayersAndTotals) {
  const auto report = model_report(build_builtin_model("mlp", {}, 1).manifest());
  EXPECT_THAT(report, AllOf(HasSubstr("mlp: 4 layers, input [1, 28, 28]"), HasSubstr("Linear"),
                            HasSubstr("100,480"), HasSubstr("101,770 parameters")));
}

// As tuples a model keeps about what it keeps as blocks: what passes through is not counted again.
TEST(MemoryEstimate, CountsWhatLayersKeep) {
  const auto estimate = [](const ModelArchive& archive, std::int64_t in_flight) {
    StageMemoryOptions options;
    options.last_layer = archive.layer_count();
    options.micro_batch_size = 32;
    options.micro_batches_in_flight = in_flight;
    options.optimizer.kind = OptimizerSpec::Kind::kAdam;
    options.replicas = 2;
    return estimate_stage_memory(archive.manifest(), options);
  };
  const auto blocks = build_builtin_model("resnet-small", {}, 1);
  const auto whole = estimate(blocks, 8);
  const auto tuples = estimate(build_builtin_model("resnet-small", {{"skip", "tuple"}}, 1), 8);
  EXPECT_EQ(whole.gradients, static_cast<std::uint64_t>(blocks.manifest().parameter_count()) * 4);
  EXPECT_EQ(whole.optimizer, 2 * whole.gradients);
  EXPECT_EQ(whole.exchange, whole.gradients);
  EXPECT_EQ(whole.activations, 8 * estimate(blocks, 1).activations);
  const auto ratio =
      static_cast<double>(tuples.activations) / static_cast<double>(whole.activations);
  EXPECT_GT(ratio, 0.8);
  EXPECT_LT(ratio, 1.8);
  EXPECT_THAT(whole.describe(), AllOf(HasSubstr("about"), HasSubstr("activations")));
}

}  // namespace
}  // namespace funcpipe

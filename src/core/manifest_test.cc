#include "core/manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace funcpipe {
namespace {

using testing::HasSubstr;

ModelManifest two_layers() {
  ModelManifest manifest;
  manifest.name = "tiny";
  manifest.inputs = {{"", DType::kUInt8, {1, 4}}};
  LayerManifest first;
  first.name = "0";
  first.kind = "Linear";
  first.file = "layers/0.pt";
  first.export_method = "script";
  first.parameters = {{"weight", DType::kFloat32, {3, 4}}, {"bias", DType::kFloat32, {3}}};
  first.outputs = {{"", DType::kFloat32, {3}}, {"", DType::kInt64, {}}};
  first.output_is_tuple = true;
  LayerManifest second;
  second.name = "norm";
  second.kind = "BatchNorm1d";
  second.file = "layers/1.pt";
  second.export_method = "trace";
  second.buffers = {{"running_mean", DType::kFloat32, {3}}, {"num_batches", DType::kInt64, {}}};
  second.outputs = {{"", DType::kFloat32, {3}}};
  manifest.layers = {first, second};
  return manifest;
}

ModelManifest read(const nlohmann::json& json) {
  return ModelManifest::from_config(ConfigNode::from_text(json.dump(2), "manifest.json"));
}

TEST(ManifestTest, ReadsBackWhatItWrites) {
  const auto json = two_layers().to_json();
  EXPECT_EQ(read(json).to_json(), json);
}

TEST(ManifestTest, Sizes) {
  const auto manifest = two_layers();
  EXPECT_EQ(manifest.parameter_count(), 15);
  EXPECT_EQ(manifest.layers[0].parameter_bytes(), 60U);
  EXPECT_EQ(manifest.layers[0].output_bytes(), 20U);
  EXPECT_EQ(manifest.layers[1].parameter_count(), 0);
  EXPECT_EQ(manifest.layers[1].buffer_bytes(), 20U);
}

// What reading says when the value at `pointer` is replaced (or removed, for a null).
std::string message_with(const char* pointer, nlohmann::json value) {
  auto json = two_layers().to_json();
  const nlohmann::json::json_pointer at(pointer);
  if (value.is_null()) {
    json.at(at.parent_pointer()).erase(at.back());
  } else {
    json[at] = std::move(value);
  }
  try {
    read(json);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("manifest.json:"));
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << pointer;
  return {};
}

TEST(ManifestTest, BadManifestsNameTheirFault) {
  const auto list = nlohmann::json::array();
  EXPECT_THAT(message_with("/funcpipe_model", 2), HasSubstr("this build reads version 1"));
  EXPECT_THAT(message_with("/name", nullptr), HasSubstr("key 'name' is missing"));
  EXPECT_THAT(message_with("/layers", list), HasSubstr("at least one layer"));
  EXPECT_THAT(message_with("/layers/1/name", "0"), HasSubstr("layers[1]: a second layer '0'"));
  EXPECT_THAT(message_with("/layers/1/colour", "red"), HasSubstr("layers[1].colour: unknown key"));
  EXPECT_THAT(message_with("/layers/1/file", "../1.pt"),
              HasSubstr("not a path within the archive"));
  EXPECT_THAT(message_with("/layers/1/file", "/1.pt"), HasSubstr("not a path within the archive"));
  EXPECT_THAT(message_with("/layers/1/file", ""), HasSubstr("not a path within the archive"));
  EXPECT_THAT(message_with("/layers/1/outputs", list), HasSubstr("0 tensors do not make"));
  EXPECT_THAT(message_with("/layers/0/output_is_tuple", false), HasSubstr("2 tensors do not make"));
  EXPECT_THAT(message_with("/inputs/0/dtype", "float"), HasSubstr("unknown element type 'float'"));
  EXPECT_THAT(message_with("/inputs/0/shape", {1, -2}), HasSubstr("dimension -2 is negative"));
  EXPECT_THAT(message_with("/inputs/0/shape", {1e9, 1e9}), HasSubstr("whole number"));
  EXPECT_THAT(message_with("/inputs/0/shape", {1LL << 40, 1LL << 40}), HasSubstr("too large"));
}

}  // namespace
}  // namespace funcpipe

#include "planner/paper_profiles.h"

#include <algorithm>
#include <map>

#include <gtest/gtest.h>

#include "base/config.h"
#include "base/error.h"

namespace funcpipe {
namespace {

double total(const std::vector<ChainLayer>& layers, double ChainLayer::*field) {
  double sum = 0;
  for (const auto& layer : layers) sum += layer.*field;
  return sum;
}

TEST(PaperModels, HaveThePublishedParameters) {
  const std::map<std::string, std::pair<double, std::size_t>> expected{
      {"resnet101", {44'549'160, 304}},
      {"amoebanet-d18", {122'470'120, 24}},
      {"amoebanet-d36", {236'194'024, 42}},
      {"bert-large", {335'141'888, 296}}};
  ASSERT_EQ(paper_model_names().size(), expected.size());
  for (const auto& name : paper_model_names()) {
    const auto layers = paper_model(name);
    EXPECT_EQ(total(layers, &ChainLayer::parameters), expected.at(name).first) << name;
    EXPECT_EQ(layers.size(), expected.at(name).second) << name;
  }
}

// 7.8 G multiply-adds an image: He et al. 2016, table 1 (7.6 in the variant with strides in the
// first convolutions). BERT: 2 flops a parameter of the blocks and token.
TEST(PaperModels, HaveThePublishedFlops) {
  EXPECT_NEAR(total(paper_model("resnet101"), &ChainLayer::flops) / 2, 7.8e9, 0.2e9);
  EXPECT_NEAR(total(paper_model("bert-large"), &ChainLayer::flops), 2.0 * 302e6 * 64, 1e9);
}

TEST(PaperModels, NamesAreUnique) {
  for (const auto& name : paper_model_names()) {
    auto layers = paper_model(name);
    std::vector<std::string> names;
    for (const auto& layer : layers) names.push_back(layer.name);
    std::sort(names.begin(), names.end());
    EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end()) << name;
  }
  EXPECT_THROW(paper_model("resnet18"), Error);
}

TEST(PaperProfiles, AreProfiles) {
  for (const auto platform : {PaperPlatform::kAwsLambda, PaperPlatform::kAlibaba}) {
    for (const auto& name : paper_profile_names()) {
      const auto profile = paper_profile(name, {.platform = platform});
      const auto text = profile.to_json().dump();
      EXPECT_EQ(ModelProfile::from_config(ConfigNode::from_text(text, name)), profile);
      EXPECT_TRUE(profile.source.starts_with("synthetic: "));
    }
  }
}

TEST(PaperProfiles, MoreMemoryIsNeverSlower) {
  const auto profile = paper_profile("amoebanet-d18");
  EXPECT_EQ(profile.option_count(), 8);
  for (const auto& layer : profile.layers) {
    const auto slower = [](const auto& a, const auto& b) {
      return a.forward_seconds > b.forward_seconds;
    };
    EXPECT_TRUE(std::is_sorted(layer.timings.begin(), layer.timings.end(), slower)) << layer.name;
    EXPECT_EQ(layer.timings[0].backward_seconds, 2 * layer.timings[0].forward_seconds);
  }
}

TEST(PaperProfiles, FollowTheMicroBatch) {
  const auto four = paper_profile("resnet101"),
             eight = paper_profile("resnet101", {.micro_batch_size = 8});
  for (int i = 0; i < four.layer_count(); ++i) {
    const auto& a = four.layers[static_cast<std::size_t>(i)];
    const auto& b = eight.layers[static_cast<std::size_t>(i)];
    EXPECT_EQ(2 * a.activation_bytes, b.activation_bytes);
    EXPECT_EQ(2 * a.output_bytes, b.output_bytes);
    EXPECT_EQ(a.parameter_bytes, b.parameter_bytes);
  }
}

TEST(PaperProfiles, AlibabaHasItsRelativeSpeeds) {
  const auto profile = paper_profile("bert-large", {.platform = PaperPlatform::kAlibaba});
  ASSERT_EQ(profile.option_count(), 4);
  const auto& timings = profile.layers[10].timings;
  EXPECT_DOUBLE_EQ(timings[0].forward_seconds, 10 * timings[3].forward_seconds);
  EXPECT_DOUBLE_EQ(timings[1].forward_seconds, 5 * timings[3].forward_seconds);
  EXPECT_DOUBLE_EQ(timings[2].forward_seconds, 2.5 * timings[3].forward_seconds);
  EXPECT_EQ(profile.options[0].uplink_bytes_per_second, 50e6);
}

}  // namespace
}  // namespace funcpipe

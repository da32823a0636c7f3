#include "planner/layer_merging.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace funcpipe {
namespace {

using testing::ElementsAre;

// Layers of equal work; the cut behind layer i sends output_bytes[i].
ModelProfile chain(const std::vector<std::uint64_t>& output_bytes) {
  ModelProfile profile;
  profile.options = {{1024, 1e7, 1e7, 0.01, 0, 0}};
  for (std::size_t i = 0; i < output_bytes.size(); ++i) {
    ProfiledLayer layer;
    layer.name = std::to_string(i);
    layer.parameter_bytes = 10;
    layer.activation_bytes = 7;
    layer.workspace_bytes = i;
    layer.output_bytes = output_bytes[i];
    layer.timings = {{true, 1, 2, 0.5, 0.1, 0.1}};
    profile.layers.push_back(layer);
  }
  return profile;
}

TEST(MergeLayers, GivesUpDearCutsFirstAndAddsUp) {
  const auto merged = merge_layers(chain({100, 1, 100, 1, 100, 1}), 3);
  EXPECT_THAT(merged.first_layer, ElementsAre(0, 2, 4, 6));
  const auto& layer = merged.profile.layers[1];
  EXPECT_EQ(layer.name, "2..3");
  EXPECT_EQ(layer.parameter_bytes, 20U);
  EXPECT_EQ(layer.activation_bytes, 14U);
  EXPECT_EQ(layer.workspace_bytes, 3U);
  EXPECT_EQ(layer.output_bytes, 1U);
  EXPECT_EQ(layer.timings[0].backward_seconds, 4);
}

TEST(MergeLayers, KeepsLayersOfEqualCutsBalanced) {
  const auto merged = merge_layers(chain(std::vector<std::uint64_t>(16, 50)), 4);
  EXPECT_THAT(merged.first_layer, ElementsAre(0, 4, 8, 12, 16));
}

TEST(MergeLayers, ALayerThatDoesNotFitMakesTheMergedOneNotFit) {
  auto profile = chain({1, 1});
  profile.layers[1].timings[0] = {.fits = false};
  EXPECT_FALSE(merge_layers(profile, 1).profile.layers[0].timings[0].fits);
}

TEST(MergeLayers, LeavesAShortModelAlone) {
  const auto profile = chain({1, 2});
  EXPECT_EQ(merge_layers(profile, 5).profile, profile);
  EXPECT_THROW(merge_layers(profile, 0), Error);
}

TEST(MergeLayers, PlansGoBackToTheLayersOfTheModel) {
  const auto merged = merge_layers(chain({100, 1, 100, 1, 100, 1}), 3);
  Plan plan;
  plan.stages = {{0, 2, 1024}, {2, 3, 1024}};
  const auto back = unmerged(plan, merged);
  EXPECT_EQ(back.stages[0], (StagePlan{0, 4, 1024}));
  EXPECT_EQ(back.stages[1], (StagePlan{4, 6, 1024}));
}

}  // namespace
}  // namespace funcpipe

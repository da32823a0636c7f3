#include "profile/profile_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "profile/statistics.h"

namespace funcpipe {
namespace {

using State = OptionProgress::Layer::State;
using testing::HasSubstr;

OptionProgress::Layer measured(std::uint64_t activation, std::vector<double> forward) {
  return {State::kMeasured, {activation, 20, 30, forward, {2, 2, 2}, {0.5, 0.5, 0.5}}};
}

OptionProgress::Layer unfit() { return {State::kDoesNotFit, {}}; }

OptionProgress option(std::vector<OptionProgress::Layer> layers) {
  OptionProgress option;
  option.start = {0.7, 180};
  option.links = {7e7, 6e7, 0.04};
  option.layers = std::move(layers);
  return option;
}

ModelManifest two_layers() {
  ModelManifest manifest;
  manifest.name = "two";
  manifest.layers.resize(2);
  manifest.layers[0].name = "0";
  manifest.layers[0].kind = "Linear";
  manifest.layers[0].parameters = {{"weight", DType::kFloat32, {5}}};
  manifest.layers[1].name = "1";
  manifest.layers[1].kind = "ReLU";
  return manifest;
}

JobSpec job() {
  JobSpec job;
  job.training.micro_batch_size = 8;
  job.training.optimizer.kind = OptimizerSpec::Kind::kAdam;
  return job;
}

TEST(Quartiles, AreThoseOfSortedValues) {
  EXPECT_EQ(quartiles_of({5, 1, 2, 4, 3}).median, 3);
  EXPECT_EQ(quartiles_of({5, 1, 2, 4, 3}).spread, 2);
  EXPECT_EQ(quartiles_of({2, 1}).median, 1.5);
  EXPECT_EQ(quartiles_of({7}).spread, 0);
  EXPECT_EQ(quartiles_of({}).median, 0);
}

TEST(MakeProfile, TakesMediansOfRoundsAndBytesOfTheLargestOption) {
  ProfileProgress progress;
  progress.options[512] = option({measured(10, {3, 1, 2}), unfit()});
  progress.options[1024] = option({measured(11, {1, 1, 5}), measured(12, {1, 1, 1})});
  const auto profile = make_profile(progress, two_layers(), job(), "local");
  EXPECT_EQ(profile.model, "two");
  EXPECT_EQ(profile.optimizer, "adam");
  EXPECT_EQ(profile.micro_batch_size, 8);
  ASSERT_EQ(profile.options.size(), 2U);
  EXPECT_EQ(profile.options[0], (ProfiledOption{512, 7e7, 6e7, 0.04, 0.7, 180}));
  const auto& first = profile.layers[0];
  EXPECT_EQ(first.parameter_bytes, 20U);
  EXPECT_EQ(first.activation_bytes, 11U);
  EXPECT_EQ(first.timings[0].forward_seconds, 2);
  EXPECT_EQ(first.timings[0].forward_spread, 1);
  EXPECT_EQ(first.timings[1].forward_seconds, 1);
  EXPECT_EQ(first.timings[1].update_seconds, 0.5);
  EXPECT_FALSE(profile.layers[1].timings[0].fits);
  EXPECT_TRUE(profile.layers[1].timings[1].fits);
  // What is written is read again.
  EXPECT_EQ(ModelProfile::from_config(ConfigNode::from_text(profile.to_json().dump(), "p")),
            profile);
}

TEST(MakeProfile, AnOptionWhereNothingRunsGetsTheLinksOfTheNext) {
  ProfileProgress progress;
  progress.options[128] = option({unfit(), unfit()});
  progress.options[128].links.emplace();
  progress.options[512] = option({measured(1, {1}), measured(1, {1})});
  const auto profile = make_profile(progress, two_layers(), job(), "local");
  EXPECT_EQ(profile.options[0].uplink_bytes_per_second, 7e7);
  EXPECT_FALSE(profile.layers[0].timings[0].fits);
}

TEST(MakeProfile, ALayerThatRunsNowhereIsAnError) {
  ProfileProgress progress;
  progress.options[512] = option({measured(1, {1}), unfit()});
  try {
    make_profile(progress, two_layers(), job(), "local");
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
    EXPECT_THAT(error.what(), HasSubstr("layer 1 ('1', ReLU) runs at none of the memory options"));
  }
}

TEST(ProfileProgress, ReadsBackWhatItWrites) {
  ProfileProgress progress;
  progress.fingerprint = "abc";
  progress.options[512] = option({measured(10, {3, 1, 2}), unfit()});
  progress.options[1024].layers.resize(2);
  const auto text = progress.to_json().dump();
  const auto read = ProfileProgress::from_text(text);
  EXPECT_EQ(read.to_json().dump(), text);
  EXPECT_TRUE(read.options.at(512).complete());
  EXPECT_FALSE(read.options.at(1024).complete());
  EXPECT_EQ(read.options.at(1024).open_layers(), 2);
}

TEST(ProfileProgress, OtherTextIsDataLoss) {
  for (const auto* text :
       {"", "{}", "[]", R"({"fingerprint": "a", "options": {"x": {"layers": []}}})"}) {
    try {
      ProfileProgress::from_text(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kDataLoss);
    }
  }
}

}  // namespace
}  // namespace funcpipe

#include "core/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace funcpipe {
namespace {

using testing::HasSubstr;

constexpr std::string_view kByHand = R"(
funcpipe_profile: 1
model: two-layers
platform: aws-lambda
micro_batch_size: 4
options:
  - {memory_mb: 1024, uplink_bytes_per_second: 40 MB/s, downlink_bytes_per_second: 4e7, latency_seconds: 40 ms}
  - {memory_mb: 2048, uplink_bytes_per_second: 70 MB/s, downlink_bytes_per_second: 70 MB/s, latency_seconds: 0.04,
     cold_start_seconds: 1.5, base_memory_bytes: 200 MB}
layers:
  - {name: first, parameter_bytes: 4 MB, activation_bytes: 1000, output_bytes: 0, forward_seconds: [0.2, 0.1], backward_seconds: [0.4, 0.2]}
  - {name: second, parameter_bytes: 0, activation_bytes: 0, output_bytes: 16, forward_seconds: [null, 1e-3],
     backward_seconds: [null, 2 ms], update_seconds: [null, 0]}
)";

ModelProfile profile_from(std::string_view text) {
  return ModelProfile::from_config(ConfigNode::from_text(text, "profile.yaml"));
}

std::string with(std::string_view what, std::string_view instead) {
  std::string text(kByHand);
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  return text.replace(at, what.size(), instead);
}

TEST(ModelProfile, ReadsWhatAPersonWrites) {
  const auto profile = profile_from(kByHand);
  EXPECT_EQ(profile.source, "written by hand");
  EXPECT_EQ(profile.options[0].uplink_bytes_per_second, 40e6);
  EXPECT_EQ(profile.options[0].latency_seconds, 0.04);
  EXPECT_EQ(profile.options[1].base_memory_bytes, 200'000'000U);
  EXPECT_EQ(profile.parameter_bytes(), 4'000'000U);
  EXPECT_EQ(profile.layers[0].timings[1].backward_seconds, 0.2);
  EXPECT_FALSE(profile.layers[1].timings[0].fits);
  EXPECT_EQ(profile.layers[1].timings[1].backward_seconds, 0.002);
  EXPECT_EQ(profile.option_of(2048), 1U);
  EXPECT_EQ(profile.option_of(4096), std::nullopt);
}

TEST(ModelProfile, IsTheSameAfterWritingAndReading) {
  auto profile = profile_from(kByHand);
  profile.layers[0].timings[0].forward_seconds = 0.1 + 0.2;  // needs all 17 digits
  EXPECT_EQ(profile_from(profile.to_json().dump()), profile);
}

struct Mistake {
  std::string_view what, instead, message;
};

class BadProfile : public testing::TestWithParam<Mistake> {};

TEST_P(BadProfile, IsAnErrorThatNamesLineKeyAndRemedy) {
  const auto& mistake = GetParam();
  try {
    profile_from(with(mistake.what, mistake.instead));
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), HasSubstr("profile.yaml:"));
    EXPECT_THAT(error.what(), HasSubstr(mistake.message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Mistakes, BadProfile,
    testing::Values(Mistake{"[0.2, 0.1]", "[0.2, -0.1]", "negative"},
                    Mistake{"[0.2, 0.1]", "[0.2, nan]", "nan"},
                    Mistake{"[0.2, 0.1]", "[0.2, .inf]", "inf"},
                    Mistake{"[0.2, 0.1]", "[0.2]", "1 values for 2 memory options"},
                    Mistake{"[0.2, 0.1]", "[0.2, null]", "must be null, as in forward_seconds"},
                    Mistake{"[0.2, 0.1]", "[200000000, 0.1]", "is the unit right"},
                    Mistake{"forward_seconds: [0.2", "forward_ms: [0.2", "forward_seconds"},
                    Mistake{", backward_seconds: [0.4, 0.2]", "", "backward_seconds"},
                    Mistake{"4e7", "40", "bytes per second"}, Mistake{"40 MB/s", "40 MB", "number"},
                    Mistake{"4 MB", "4 MB/s", "amount of bytes"},
                    Mistake{"4 MB", "-4", "amount of bytes"},
                    Mistake{"memory_mb: 2048", "memory_mb: 1024", "increasing"},
                    Mistake{"micro_batch_size: 4", "micro_batch_size: 0", "at least 1"},
                    Mistake{"funcpipe_profile: 1", "funcpipe_profile: 7", "version 7"},
                    Mistake{"model: two-layers", "modle: two-layers", "model"}));

TEST(ModelProfile, NeedsLayersAndOptions) {
  const auto head = std::string(kByHand.substr(0, kByHand.find("layers:")));
  EXPECT_THROW(profile_from(head + "layers: []"), Error);
  EXPECT_THROW(profile_from(head), Error);
}

}  // namespace
}  // namespace funcpipe

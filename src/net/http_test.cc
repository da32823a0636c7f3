#include "net/http.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "net/base64.h"

namespace funcpipe {
namespace {

TEST(Http, HeadersAreFoundWithoutCase) {
  const HttpHeaders headers = {{"Content-Type", "a"}, {"x-other", "b"}, {"X-Other", "c"}};
  EXPECT_EQ(header(headers, "content-type"), "a");
  EXPECT_EQ(header(headers, "X-OTHER"), "b");
  EXPECT_EQ(header(headers, "missing"), "");
}

TEST(Http, TargetsAreTakenApartBeforeDecoding) {
  const HttpTarget target =
      parse_target("/2015-03-31/functions/a%2Fb%3Ac/?Marker=x%20y&MaxItems=2&f");
  EXPECT_EQ(target.segments, (std::vector<std::string>{"2015-03-31", "functions", "a/b:c"}));
  EXPECT_EQ(header(target.query, "Marker"), "x y");
  EXPECT_EQ(header(target.query, "MaxItems"), "2");
  EXPECT_EQ(target.query.back(), (std::pair<std::string, std::string>{"f", ""}));
  EXPECT_TRUE(parse_target("/").segments.empty());
}

TEST(Http, BrokenEscapesStayAsTheyAre) {
  EXPECT_EQ(percent_decode("%zz%4"), "%zz%4");
  EXPECT_EQ(percent_decode("%41%"), "A%");
}

TEST(Http, EncodingsAreUndoneByDecoding) {
  Rng rng(7);
  for (int round = 0; round < 200; ++round) {
    std::string bytes(rng.below(40), '\0');
    for (auto& byte : bytes) byte = static_cast<char>(rng.below(256));
    EXPECT_EQ(percent_decode(percent_encode(bytes)), bytes);
    EXPECT_EQ(base64_decode(base64_encode(bytes)), bytes);
  }
}

TEST(Base64, FollowsTheStandard) {
  EXPECT_EQ(base64_encode("foobar"), "Zm9vYmFy");
  EXPECT_EQ(base64_encode("fooba"), "Zm9vYmE=");
  EXPECT_EQ(base64_encode("foob"), "Zm9vYg==");
  EXPECT_EQ(base64_decode("Zm9vYg=="), "foob");
  EXPECT_EQ(base64_decode("Zm9"), std::nullopt);
  EXPECT_EQ(base64_decode("!!!!"), std::nullopt);
}

}  // namespace
}  // namespace funcpipe

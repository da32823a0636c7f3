#include "platform/lambda_names.h"

#include <gtest/gtest.h>

namespace funcpipe {
namespace {

TEST(LambdaNames, AcceptsEveryForm) {
  for (const auto* text : {"f-1_A", "123456789012:function:f-1_A",
                           "arn:aws:lambda:us-east-1:123456789012:function:f-1_A",
                           "arn:aws-cn:lambda:cn-north-1:123456789012:function:f-1_A"}) {
    const auto bare = parse_function_name(text);
    ASSERT_TRUE(bare) << text;
    EXPECT_EQ(bare->name, "f-1_A");
    EXPECT_EQ(bare->qualifier, "");
    const auto qualified = parse_function_name(std::string(text) + ":$LATEST");
    ASSERT_TRUE(qualified) << text;
    EXPECT_EQ(qualified->name, "f-1_A");
    EXPECT_EQ(qualified->qualifier, "$LATEST");
  }
}

TEST(LambdaNames, RefusesTheRest) {
  for (const auto* text :
       {"", "a b", "a:b:c", "arn:aws:s3:::bucket", "12:function:f", "f/g", "f:"}) {
    EXPECT_FALSE(parse_function_name(text)) << text;
  }
}

}  // namespace
}  // namespace funcpipe

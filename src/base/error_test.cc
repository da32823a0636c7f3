#include "base/error.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace funcpipe {
namespace {

TEST(ErrorTest, NamesOfCodesReadBack) {
  for (int i = 0; i <= static_cast<int>(ErrorCode::kInternal); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    EXPECT_EQ(error_code_from_string(to_string(code)), code);
  }
  EXPECT_EQ(to_string(ErrorCode::kDeadlineExceeded), "deadline_exceeded");
  EXPECT_EQ(error_code_from_string("no such code"), ErrorCode::kInternal);
}

TEST(ErrorTest, ContextKeepsCodeAndRetry) {
  const Error error(ErrorCode::kUnavailable, "no answer", Error::Retry::kMayHelp);
  const auto outer = error.with_context("store");
  EXPECT_STREQ(outer.what(), "store: no answer");
  EXPECT_EQ(outer.code(), ErrorCode::kUnavailable);
  EXPECT_TRUE(outer.retryable());
}

TEST(ErrorTest, FailFormats) {
  try {
    fail(ErrorCode::kNotFound, "no {} in {}", "x", 3);
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "no x in 3");
    EXPECT_EQ(error.code(), ErrorCode::kNotFound);
    EXPECT_FALSE(error.retryable());
  }
}

TEST(ErrorTest, Errno) {
  const auto error = error_from_errno(ENOSPC, "cannot write /x");
  EXPECT_STREQ(error.what(), "cannot write /x: No space left on device");
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted);
  EXPECT_EQ(error_from_errno(ENOENT, "").code(), ErrorCode::kNotFound);
  EXPECT_EQ(error_from_errno(EACCES, "").code(), ErrorCode::kFailedPrecondition);
  EXPECT_TRUE(error_from_errno(EIO, "").retryable());
  EXPECT_FALSE(error_from_errno(ENOSPC, "").retryable());
}

}  // namespace
}  // namespace funcpipe

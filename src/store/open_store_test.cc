#include "store/open_store.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "store/testing_store.h"

namespace funcpipe::testing {
namespace {

using ::testing::HasSubstr;

ErrorCode code_of(std::string_view url, OpenMode mode, std::string_view part_of_text) {
  try {
    open_store(url, mode);
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(std::string(part_of_text)));
    return error.code();
  }
  ADD_FAILURE() << "no error for " << url;
  return ErrorCode::kInternal;
}

TEST(OpenStoreTest, PathsAndFileUrlsAreTheSameFolder) {
  const TemporaryDirectory folder;
  const auto path = (folder.path() / "new/one with space").string();
  put_text(*open_store(path), "k", "x");
  EXPECT_EQ(get_text(*open_store("file://" + path), "k"), "x");
  EXPECT_EQ(get_text(*open_store(path, OpenMode::kExisting), "k"), "x");
}

TEST(OpenStoreTest, AnExistingStoreIsNotMade) {
  const TemporaryDirectory folder;
  const auto path = (folder.path() / "none").string();
  EXPECT_EQ(code_of(path, OpenMode::kExisting, path), ErrorCode::kNotFound);
  EXPECT_FALSE(std::filesystem::exists(path));
  put_text(*open_store(folder.path().string()), "file", "x");
  const auto file = (folder.path() / "file").string();
  EXPECT_EQ(code_of(file, OpenMode::kExisting, file), ErrorCode::kNotFound);
  EXPECT_EQ(code_of(file, OpenMode::kCreate, "not writable"), ErrorCode::kFailedPrecondition);
}

TEST(OpenStoreTest, EachMemoryStoreIsAFreshOne) {
  const auto store = open_store("memory:");
  put_text(*store, "k", "x");
  EXPECT_FALSE(open_store("memory:", OpenMode::kExisting)->get("k"));
}

TEST(OpenStoreTest, OtherUrlsAreRefusedNamingTheKnownOnes) {
  for (const auto* url :
       {"s3://bucket/x", "oss://bucket", "http://host/x", "s3:bucket", "memory://x"}) {
    EXPECT_EQ(code_of(url, OpenMode::kCreate, "file:///absolute/path"), ErrorCode::kUnimplemented);
  }
  for (const auto* url : {"file://relative/path", "file:x", "file://"}) {
    EXPECT_EQ(code_of(url, OpenMode::kCreate, "write file:///"), ErrorCode::kInvalidArgument);
  }
  EXPECT_EQ(code_of("", OpenMode::kCreate, "empty"), ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace funcpipe::testing

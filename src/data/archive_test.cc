#include "data/archive.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;

class Archive : public ::testing::TestWithParam<const char*> {
 protected:
  std::filesystem::path path() const { return folder_.path() / (std::string("a") + GetParam()); }
  void write() const {
    testing::write_archive(path(), {{"folder/", ""},
                                    {"folder/one", "first"},
                                    {"./two", ""},
                                    {"three", std::string(3'000'000, 'x')}});
  }
  TemporaryDirectory folder_;
};

TEST_P(Archive, ListsFilesOnly) {
  write();
  EXPECT_TRUE(is_archive(path()));
  EXPECT_EQ(list_archive(path()), (std::vector<std::string>{"folder/one", "two", "three"}));
}

TEST_P(Archive, ReadsWhatIsWanted) {
  write();
  const auto members = read_archive(path(), [](const std::string& name) { return name != "two"; });
  ASSERT_EQ(members.size(), 2U);
  EXPECT_EQ(members[0].name, "folder/one");
  EXPECT_EQ(members[0].data.text(), "first");
  EXPECT_EQ(members[1].data.text(), std::string(3'000'000, 'x'));
}

TEST_P(Archive, TruncationIsAnError) {
  write();
  const auto whole = read_text_file(path());
  for (const auto size : {whole.size() / 3, whole.size() / 2, whole.size() * 3 / 4}) {
    write_file(path(), std::string_view(whole).substr(0, size));
    EXPECT_THROW(read_archive(path(), [](const std::string&) { return true; }), Error) << size;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, Archive, ::testing::Values(".tar", ".tar.gz", ".tgz", ".zip"));

TEST(ArchiveErrors, NoFileNoArchiveNoContent) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "file";
  const auto all = [](const std::string&) { return true; };
  expect_error(ErrorCode::kNotFound, {"file"}, [&] { list_archive(path); });
  for (const auto& content : {std::string(), std::string("text"), testing::gzip("not a tar")}) {
    write_file(path, std::string_view(content));
    EXPECT_FALSE(is_archive(path));
    expect_error(ErrorCode::kInvalidArgument, {"file", "archive"},
                 [&] { read_archive(path, all); });
  }
  EXPECT_FALSE(is_archive(folder.path()));
}

}  // namespace
}  // namespace funcpipe

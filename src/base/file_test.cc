#include "base/file.h"

#include <array>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

template <typename Run>
void expect_error(ErrorCode code, std::string_view text, Run run) {
  try {
    run();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(std::string(text)));
  }
}

class FileTest : public testing::Test {
 protected:
  const TemporaryDirectory folder_;
  const fs::path path_ = folder_.path() / "file";
};

TEST_F(FileTest, WritesAndReads) {
  const std::array<ByteView, 3> parts = {as_bytes("one "), as_bytes(""), as_bytes("two")};
  write_file(path_, parts);
  EXPECT_EQ(read_text_file(path_), "one two");
  write_file(path_, "");
  EXPECT_EQ(read_file(path_).size(), 0U);
  EXPECT_EQ(entries(folder_.path()), 1U);
}

TEST_F(FileTest, MakesParentFolders) {
  const auto deep = folder_.path() / "a" / "b" / "file";
  write_file(deep, "x");
  EXPECT_EQ(read_text_file(deep), "x");
  expect_error(ErrorCode::kNotFound, "cannot make folder " + (deep / "c").string(),
               [&] { write_file(deep / "c" / "file", "x"); });
}

TEST_F(FileTest, ErrorsNameThePath) {
  expect_error(ErrorCode::kNotFound, "cannot open " + path_.string(), [&] { read_file(path_); });
  expect_error(ErrorCode::kFailedPrecondition, "cannot read " + folder_.path().string(),
               [&] { read_file(folder_.path()); });
  fs::create_directory(path_);
  expect_error(ErrorCode::kFailedPrecondition, "cannot write " + path_.string(),
               [&] { write_file(path_, "x"); });
  EXPECT_EQ(entries(folder_.path()), 1U) << "a temporary file is left";
}

TEST_F(FileTest, ReadsWhatDoesNotSayItsSize) {
  EXPECT_THAT(read_text_file("/proc/self/status"), HasSubstr("Name:"));
  ASSERT_EQ(::mkfifo(path_.c_str(), 0600), 0);
  const std::string sent(100'000, 'x');
  std::jthread writer([&] {
    const FileDescriptor pipe(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    const auto bytes = as_bytes(sent);
    write_all(pipe.get(), std::span(&bytes, 1), path_);
  });
  EXPECT_EQ(read_text_file(path_), sent);
}

TEST_F(FileTest, AReaderSeesOldOrNewNeverAMix) {
  const std::string old_text(200'000, 'a'), new_text(100'000, 'b');
  write_file(path_, old_text);
  std::jthread writer([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      write_file(path_, new_text);
      write_file(path_, old_text);
    }
  });
  for (int i = 0; i < 300; ++i) {
    const auto text = read_text_file(path_);
    ASSERT_TRUE(text == old_text || text == new_text) << text.size();
  }
}

TEST_F(FileTest, ADiskFullLeavesTheOldFileAndNothingElse) {
  write_file(path_, "old");
  const auto child = ::fork();  // limits last as long as the process
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_file(path_, std::string(5000, 'x'));
    } catch (const Error& error) {
      ::_exit(error.code() == ErrorCode::kResourceExhausted ? 0 : 1);
    }
    ::_exit(2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(read_text_file(path_), "old");
  EXPECT_EQ(entries(folder_.path()), 1U);
}

TEST(TemporaryDirectoryTest, GoesWithAllItHolds) {
  fs::path path;
  {
    const TemporaryDirectory folder;
    path = folder.path();
    write_file(path / "a" / "b", "x");
    EXPECT_TRUE(fs::is_directory(path));
  }
  EXPECT_FALSE(fs::exists(path));
}

TEST(FileDescriptorTest, HasOneOwner) {
  const auto is_open = [](int fd) { return ::fcntl(fd, F_GETFD) >= 0; };
  FileDescriptor first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  const int fd = first.get();
  FileDescriptor second(std::move(first));
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move): moved from means empty
  EXPECT_TRUE(is_open(fd));
  second = FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(is_open(fd));
  const int released = second.release();
  second.reset();
  EXPECT_TRUE(is_open(released));
  ::close(released);
}

}  // namespace
}  // namespace funcpipe

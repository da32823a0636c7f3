#include "store/directory_store.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "store/testing_store.h"

namespace funcpipe::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Every file and folder below `root`, hidden ones too.
std::vector<std::string> everything_in(const fs::path& root) {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(root)) {
    names.push_back(entry.path().lexically_relative(root).string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// Runs `work` in a child process and gives its exit code.
pid_t start(const std::function<int()>& work) {
  const pid_t pid = ::fork();
  if (pid == 0) {
    int code = 99;
    try {
      code = work();
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
    }
    ::_exit(code);
  }
  return pid;
}

int exit_code_of(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

template <typename Call>
Error error_of(Call call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return Error(ErrorCode::kInternal, "no error");
}

class DirectoryStoreTest : public ::testing::TestWithParam<TemporaryFiles> {
 protected:
  const TemporaryDirectory folder_;
  const fs::path root_ = folder_.path() / "store";
  DirectoryStore store_{root_, GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Files, DirectoryStoreTest,
                         ::testing::Values(TemporaryFiles::kNameless, TemporaryFiles::kNamed),
                         [](const auto& suite) {
                           return suite.param == TemporaryFiles::kNamed ? "Named" : "Nameless";
                         });

TEST_P(DirectoryStoreTest, AnObjectIsAFileAndNothingElseIsLeft) {
  put_text(store_, "a/b", "first");
  put_text(store_, "a/b", "second");
  EXPECT_EQ(put_if_absent(store_, "a/b", as_bytes("third")), PutResult::kAlreadyThere);
  EXPECT_EQ(put_if_absent(store_, "a/c", as_bytes("fourth")), PutResult::kStored);
  EXPECT_THAT(everything_in(root_), ElementsAre("a", "a/b", "a/c"));
  EXPECT_EQ(read_text_file(root_ / "a/b"), "second");
}

TEST_P(DirectoryStoreTest, RemoveTakesEmptyFoldersAlongButNeverTheRoot) {
  DirectoryStore slashed(root_.string() + "/", GetParam());
  put_text(slashed, "a/b/c/d", "x");
  put_text(slashed, "a/e", "x");
  slashed.remove("a/b/c/d");
  EXPECT_THAT(everything_in(root_), ElementsAre("a", "a/e"));
  slashed.remove("a/e");
  EXPECT_TRUE(fs::is_directory(root_));
  EXPECT_THAT(everything_in(root_), IsEmpty());
}

TEST_P(DirectoryStoreTest, ForeignFilesThatAreNoKeysAreNotSeen) {
  put_text(store_, "a/b", "x");
  std::ofstream(root_ / "a/.nfs0001") << "x";
  std::ofstream(root_ / "\xc3\xa4") << "x";
  fs::create_directories(root_ / ".git/objects");
  fs::create_directories(root_ / "empty folder");
  EXPECT_THAT(keys_of(list_all(store_, "")), ElementsAre("a/b"));
}

TEST_P(DirectoryStoreTest, AnEmptyFolderDoesNotStandInTheWay) {
  fs::create_directories(root_ / "a");
  fs::create_directories(root_ / "b");
  put_text(store_, "a", "x");
  EXPECT_EQ(put_if_absent(store_, "b", as_bytes("y")), PutResult::kStored);
  EXPECT_EQ(get_text(store_, "a") + get_text(store_, "b"), "xy");
}

TEST_P(DirectoryStoreTest, AKeyThatIsAnothersFolderIsRefused) {
  put_text(store_, "a/b", "x");
  put_text(store_, "c", "x");
  for (const auto& error : {error_of([&] { put_text(store_, "a", "y"); }),
                            error_of([&] { put_if_absent(store_, "a", as_bytes("y")); }),
                            error_of([&] { put_text(store_, "c/d", "y"); }),
                            error_of([&] { put_if_absent(store_, "c/d/e", as_bytes("y")); })}) {
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition) << error.what();
    EXPECT_THAT(error.what(), HasSubstr(root_.string()));
  }
  EXPECT_THAT(everything_in(root_), ElementsAre("a", "a/b", "c"));
}

TEST_P(DirectoryStoreTest, OneOfManyProcessesWins) {
  constexpr int kRounds = 80;
  constexpr int kMixture = 98;  // exit code; others are numbers of wins
  constexpr int kProcesses = 6;
  std::vector<pid_t> children;
  for (int p = 1; p <= kProcesses; ++p) {
    children.push_back(start([&, p] {
      int wins = 0;
      for (int round = 0; round < kRounds; ++round) {
        const auto text = std::string(2000, static_cast<char>('0' + p));
        const auto key = fmt::format("r{}/x", round);
        if (put_if_absent(store_, key, as_bytes(text)) == PutResult::kStored) ++wins;
        const auto object = store_.get(key);
        if (!object || object->text() != std::string(2000, object->text()[0])) return kMixture;
        put_text(store_, fmt::format("shared/{}", round % 3), text);
        store_.remove(fmt::format("shared/{}", (round + p) % 3));
      }
      return wins;
    }));
  }
  int wins = 0;
  for (const auto child : children) {
    const int code = exit_code_of(child);
    ASSERT_GE(code, 0);
    ASSERT_LE(code, kRounds);
    wins += code;
  }
  EXPECT_EQ(wins, kRounds);
  for (const auto& name : everything_in(root_)) EXPECT_TRUE(is_key(name)) << name;
}

TEST_P(DirectoryStoreTest, StoresInOneProcessDoNotCollide) {
  DirectoryStore other(root_, GetParam());
  for (int i = 0; i < 20; ++i) {
    put_text(i % 2 ? store_ : other, "k", std::to_string(i));
    EXPECT_EQ(get_text(i % 2 ? other : store_, "k"), std::to_string(i));
  }
}

// What a put that ends for want of space leaves: the old object, and no file of its own.
void check_after_failed_put(DirectoryStore& store, const fs::path& root, const Error& error) {
  EXPECT_EQ(error.code(), ErrorCode::kResourceExhausted) << error.what();
  EXPECT_FALSE(error.retryable());
  EXPECT_THAT(error.what(), HasSubstr((root / "a/k").string()));
  EXPECT_EQ(get_text(store, "a/k"), "old");
  EXPECT_THAT(everything_in(root), ElementsAre("a", "a/k"));
}

TEST_P(DirectoryStoreTest, AFullDiskIsAClearErrorAndHarmsNothing) {
  fs::create_directories(root_);
  if (::mount("tmpfs", root_.c_str(), "tmpfs", 0, "size=256k") != 0) {
    GTEST_SKIP() << "cannot mount a small tmpfs here";
  }
  put_text(store_, "a/k", "old");
  const auto big = random_bytes(1'000'000, 1);
  const auto error = error_of([&] { put(store_, "a/k", big.view()); });
  EXPECT_THAT(error.what(), HasSubstr("no space left"));
  check_after_failed_put(store_, root_, error);
  put(store_, "a/l", big.view().first(100'000));
  EXPECT_EQ(store_.head("a/l").value().size, 100'000U);
  ::umount(root_.c_str());
}

TEST_P(DirectoryStoreTest, AFileTooLargeIsAClearErrorAndHarmsNothing) {
  put_text(store_, "a/k", "old");
  const auto child = start([&] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{100'000, 100'000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto big = random_bytes(300'000, 1);
    check_after_failed_put(store_, root_, error_of([&] { put(store_, "a/k", big.view()); }));
    check_after_failed_put(store_, root_,
                           error_of([&] { put_if_absent(store_, "a/k", big.view()); }));
    return ::testing::Test::HasFailure() ? 1 : 0;
  });
  EXPECT_EQ(exit_code_of(child), 0);
}

TEST_P(DirectoryStoreTest, AnUnwritableRootIsNamed) {
  std::ofstream(folder_.path() / "file") << "x";
  const std::vector<fs::path> roots = {folder_.path() / "file" / "store",
                                       fs::path("/proc/funcpipe/store")};
  for (const auto& root : roots) {
    const auto error = error_of([&] { DirectoryStore(root, GetParam()).check_writable(); });
    EXPECT_EQ(error.code(), ErrorCode::kFailedPrecondition);
    EXPECT_THAT(error.what(), HasSubstr(fmt::format("store {} is not writable: ", root.string())));
  }
}

TEST_P(DirectoryStoreTest, TheCheckMakesTheRootAndLeavesItEmpty) {
  DirectoryStore(root_ / "x/y", GetParam()).check_writable();
  EXPECT_THAT(everything_in(root_), ElementsAre("x", "x/y"));
}

TEST(DirectoryStoreKillTest, AKilledWriterLeavesNothingBehind) {
  const TemporaryDirectory folder;
  const fs::path root = folder.path();
  const auto child = start([&]() -> int {
    DirectoryStore store(root);
    const auto bytes = random_bytes(64'000'000, 1);
    while (true) put(store, "k", bytes.view());
  });
  ::usleep(100'000);
  ::kill(child, SIGKILL);
  EXPECT_EQ(exit_code_of(child), -SIGKILL);
  DirectoryStore store(root);
  const auto info = store.head("k");
  EXPECT_TRUE(!info || info->size == 64'000'000);
  // It may have died between the naming of a file and its renaming, a matter of microseconds.
  EXPECT_LE(everything_in(root).size(), 2U);
}

}  // namespace
}  // namespace funcpipe::testing

#include "platform/cgroup.h"

#include <csignal>
#include <filesystem>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/child_process.h"

namespace funcpipe {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Groups of `pid` anywhere.
std::vector<fs::path> groups_of(pid_t pid) {
  std::vector<fs::path> found;
  const std::string name = "funcpipe-" + std::to_string(pid);
  std::error_code error;
  for (fs::recursive_directory_iterator at("/sys/fs/cgroup", error), end; at != end;
       at.increment(error)) {
    if (at->path().filename() == name) found.push_back(at->path());
  }
  return found;
}

// These tests say what holds where cgroups are permitted; elsewhere the fallback's tests do.
class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    const CgroupTree tree;
    if (!tree.can_limit_memory() || !tree.can_limit_cpu()) GTEST_SKIP() << tree.description();
  }
};

TEST_F(CgroupTest, LimitsMemoryAndCountsKills) {
  const CgroupTree tree;
  const auto group = tree.create("eater", {.memory_bytes = 64 << 20, .cpus = 1});
  EXPECT_EQ(group->oom_kills(), 0);
  ChildProcessOptions options;
  options.command = {"/bin/sh", "-c",
                     "head -c 300000000 /dev/zero | tail -c 290000000 > /dev/null"};
  options.environment = {"PATH=/usr/bin:/bin"};
  options.cgroup_fds = group->entrances();
  auto process = ChildProcess::start(options);
  ASSERT_TRUE(process.wait_until(std::chrono::steady_clock::now() + 10s));
  EXPECT_GE(group->oom_kills(), 1);
}

TEST_F(CgroupTest, LeavesNothingBehind) {
  {
    const CgroupTree tree;
    const auto group = tree.create("idle", {.memory_bytes = 64 << 20, .cpus = 0.5});
    ChildProcessOptions options;
    options.command = {"/bin/sleep", "60"};
    options.cgroup_fds = group->entrances();
    const auto process = ChildProcess::start(options);
    EXPECT_FALSE(groups_of(::getpid()).empty());
  }
  EXPECT_TRUE(groups_of(::getpid()).empty());
}

TEST_F(CgroupTest, SweepsWhatDeadProcessesLeft) {
  const pid_t child = ::fork();
  if (child == 0) {
    const CgroupTree tree;
    const auto group = tree.create("left", {.memory_bytes = 64 << 20, .cpus = 0.5});
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_FALSE(groups_of(child).empty());
  const CgroupTree tree;
  EXPECT_TRUE(groups_of(child).empty());
}

TEST(Cgroup, SaysWhatItOffers) {
  const CgroupTree tree;
  EXPECT_TRUE(tree.description().starts_with("cgroup v") ||
              tree.description().starts_with("not available: "))
      << tree.description();
}

}  // namespace
}  // namespace funcpipe

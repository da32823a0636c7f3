#include "platform/child_process.h"

#include <array>
#include <csignal>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "base/error.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;

TimePoint in(Duration delay) { return std::chrono::steady_clock::now() + delay; }

ChildProcess shell(const std::string& script, int output = -1) {
  ChildProcessOptions options;
  options.command = {"/bin/sh", "-c", script};
  options.environment = {"WORD=hello", "PATH=/usr/bin:/bin"};
  options.output_fd = output;
  return ChildProcess::start(options);
}

// What a script writes.
std::string output_of(const std::string& script) {
  int ends[2];
  EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  auto process = shell(script, writer.get());
  writer.reset();
  std::string text;
  std::array<char, 256> buffer;
  for (ssize_t got = 0; (got = ::read(reader.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
  EXPECT_TRUE(process.wait_until(in(5s)));
  return text;
}

TEST(ChildProcess, TellsHowItEnded) {
  auto exits = shell("exit 7");
  ASSERT_TRUE(exits.wait_until(in(5s)));
  EXPECT_FALSE(exits.poll()->signalled);
  EXPECT_EQ(exits.poll()->text(), "exit status 7");
  auto dies = shell("kill -SEGV $$");
  ASSERT_TRUE(dies.wait_until(in(5s)));
  EXPECT_EQ(dies.poll()->text(), "signal: segmentation fault");
  EXPECT_GT(dies.peak_memory_mb(), 0);
}

TEST(ChildProcess, HasItsOwnEnvironmentInputAndGroup) {
  EXPECT_EQ(output_of("echo $WORD; echo $HOME; cat; ps -o pgid= -p $$ | tr -d ' ' | grep -x $$ "
                      ">/dev/null && echo own"),
            "hello\n\nown\n");
}

TEST(ChildProcess, InheritsNoDescriptors) {
  const FileDescriptor open(::open("/dev/null", O_RDONLY));  // without close-on-exec
  EXPECT_EQ(output_of("ls /proc/self/fd | wc -l"), "4\n");   // 0, 1, 2 and the listing
}

TEST(ChildProcess, IsKilledWithItsWholeGroup) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  auto process = shell("sleep 60 & sleep 60", writer.get());
  writer.reset();
  EXPECT_FALSE(process.wait_until(in(50ms)));
  process.kill();
  ASSERT_TRUE(process.wait_until(in(5s)));
  EXPECT_EQ(process.poll()->text(), "signal: killed");
  char byte = 0;
  EXPECT_EQ(::read(reader.get(), &byte, 1), 0);  // the grandchild held it too
}

TEST(ChildProcess, EndsWithItsOwner) {
  pid_t pid = 0;
  {
    const auto process = shell("sleep 60");
    pid = process.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

TEST(ChildProcess, SaysWhyACommandCannotRun) {
  int ends[2];
  ASSERT_EQ(::pipe2(ends, O_CLOEXEC), 0);
  const FileDescriptor reader(ends[0]);
  FileDescriptor writer(ends[1]);
  ChildProcessOptions options;
  options.command = {"/no/such/program"};
  options.output_fd = writer.get();
  auto process = ChildProcess::start(options);
  ASSERT_TRUE(process.wait_until(in(5s)));
  EXPECT_EQ(process.poll()->code, 127);
  writer.reset();
  std::string text(200, '\0');
  text.resize(static_cast<std::size_t>(::read(reader.get(), text.data(), text.size())));
  EXPECT_NE(text.find("/no/such/program: No such file"), std::string::npos) << text;
  EXPECT_THROW(ChildProcess::start({}), Error);
}

}  // namespace
}  // namespace funcpipe

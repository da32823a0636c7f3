// Nothing of a local host is left, however it or its client ends.
#include <csignal>
#include <filesystem>
#include <fstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "platform/cgroup.h"
#include "platform/testing_local_host.h"

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// Gone, or a zombie that waits for its parent.
bool is_gone(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto name_end = text.rfind(')');
  return name_end == std::string::npos || text.at(name_end + 2) == 'Z';
}

template <typename Condition>
bool soon(Condition holds) {
  const auto end = std::chrono::steady_clock::now() + 5s;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(10ms);
  }
  return true;
}

bool port_is_closed(int port) {
  HttpClient http({.connect_timeout = 1s, .use_proxy = false});
  try {
    http.send({"GET", fmt::format("http://127.0.0.1:{}/_host/state", port), {}, ""}, 1s);
    return false;
  } catch (const Error&) {
    return true;
  }
}

bool has_groups(pid_t host) {
  std::error_code error;
  const std::string name = "funcpipe-" + std::to_string(host);
  for (fs::recursive_directory_iterator at("/sys/fs/cgroup", error), end; at != end;
       at.increment(error)) {
    if (at->path().filename() == name) return true;
  }
  return false;
}

// The testing client in a process of its own, once its functions run.
class Scene {
 public:
  Scene() {
    int ends[2];
    EXPECT_EQ(::pipe2(ends, O_CLOEXEC), 0);
    const FileDescriptor reader(ends[0]);
    FileDescriptor writer(ends[1]);
    ChildProcessOptions options;
    options.command = {FUNCPIPE_TESTING_CLIENT};
    options.output_fd = writer.get();
    client.emplace(ChildProcess::start(options));
    writer.reset();
    std::string line;
    for (char c = 0; ::read(reader.get(), &c, 1) == 1 && c != '\n';) line += c;
    const auto state = nlohmann::json::parse(line);
    host = state["host"];
    port = state["port"];
    for (const auto& sandbox : state["sandboxes"]) workers.push_back(sandbox["pid"]);
  }

  void expect_nothing_left() const {
    EXPECT_TRUE(soon([&] { return is_gone(host); }));
    for (const pid_t worker : workers) EXPECT_TRUE(soon([&] { return is_gone(worker); }));
    EXPECT_TRUE(port_is_closed(port));
  }

  std::optional<ChildProcess> client;
  pid_t host = 0;
  int port = 0;
  std::vector<pid_t> workers;
};

TEST(LocalHostCleanup, EndsWithAKilledClient) {
  const Scene scene;
  ASSERT_EQ(scene.workers.size(), 2);
  ASSERT_FALSE(is_gone(scene.host));
  ASSERT_EQ(::getpgid(scene.host), scene.host);  // out of reach of the terminal's Ctrl-C
  ASSERT_EQ(::kill(scene.client->pid(), SIGKILL), 0);
  scene.expect_nothing_left();
  EXPECT_FALSE(has_groups(scene.host));
}

TEST(LocalHostCleanup, EndsOnASignal) {
  const Scene scene;
  ASSERT_EQ(::kill(scene.host, SIGTERM), 0);
  scene.expect_nothing_left();
  EXPECT_FALSE(has_groups(scene.host));
}

TEST(LocalHostCleanup, TakesTheWorkersAlongWhenItIsKilled) {
  const Scene scene;
  ASSERT_EQ(::kill(scene.host, SIGKILL), 0);
  scene.expect_nothing_left();
  const CgroupTree next;  // the next start sweeps
  EXPECT_FALSE(has_groups(scene.host));
}

TEST(LocalHostCleanup, IsCompleteWhenTheClientsObjectEnds) {
  pid_t host_pid = 0, worker = 0;
  int port = 0;
  const auto start = [&] {
    TestingLocalHost host;
    worker = host.call("main", {{"do", "context"}})["pid"];
    const auto busy = host.start("half", {{"do", "sleep"}, {"ms", 60000}});
    host.wait_for_state([](const nlohmann::json& state) { return state["sandboxes"].size() == 2; });
    host_pid = host.process().pid();
    port = host.process().port();
  };
  start();
  EXPECT_TRUE(is_gone(host_pid));
  EXPECT_TRUE(is_gone(worker));
  EXPECT_TRUE(port_is_closed(port));
  EXPECT_FALSE(has_groups(host_pid));
}

TEST(LocalHostCleanup, TellsTheClientWhenTheHostDies) {
  TestingLocalHost host;
  const auto invocation = host.start("main", {{"do", "sleep"}, {"ms", 60000}});
  host.wait_for_state([](const nlohmann::json& state) { return state["sandboxes"].size() == 1; });
  ASSERT_EQ(::kill(host.process().pid(), SIGKILL), 0);
  EXPECT_EQ(TestingLocalHost::finish(*invocation).kind, Kind::kUnreachable);
}

}  // namespace
}  // namespace funcpipe

#include "platform/local_host_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace funcpipe {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

LocalHostConfig parse(const std::string& text) {
  return LocalHostConfig::from_config(ConfigNode::from_text(text, "host.yaml"));
}

std::string message_of(const std::string& text) {
  try {
    parse(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    return error.what();
  }
  return "no error";
}

const std::string kGood = "functions: [{name: f, memory_mb: 512}]\ncommand: [/bin/true, worker]\n";

TEST(LocalHostConfig, HasSensibleDefaults) {
  const auto config = parse(kGood);
  EXPECT_EQ(config.functions, (std::vector<LocalFunction>{{"f", 512}}));
  EXPECT_EQ(config.time_limit, 900s);
  EXPECT_EQ(config.time_dilation, 1);
  EXPECT_EQ(config.uplink_bytes_per_second, LocalHostConfig::kUnlimited);
}

TEST(LocalHostConfig, SurvivesTheWayThroughJson) {
  LocalHostConfig config;
  config.functions = {{"a", 128}, {"b", 10240}};
  config.command = {"/x/y", "worker"};
  config.environment = {"A=1", "B=", "C=true", "D=x=y", "E=\"quoted\"\n#"};
  config.time_limit = 1234567us;
  config.max_concurrency = 7;
  config.memory_limit = config.cpu_limit = config.use_cgroups = false;
  config.time_dilation = 2.5;
  config.cold_start = 120ms;
  config.uplink_bytes_per_second = 70e6;
  config.latency = 40ms;
  config.log_dir = "/tmp/a b";
  config.port = 4242;
  config.idle_timeout = 3s;
  config.faults = {9, 0.1, 0.2, 0.3, 10ms, 20ms};
  EXPECT_EQ(parse(config.to_json().dump()), config);
}

TEST(LocalHostConfig, SaysWhatIsWrong) {
  EXPECT_THAT(message_of("command: [/x]\n"), HasSubstr("'functions' is missing"));
  EXPECT_THAT(message_of("functions: [{name: f, memory_mb: 512}]\n"), HasSubstr("command"));
  EXPECT_THAT(message_of(kGood + "time_limt: 3 s\n"), HasSubstr("did you mean 'time_limit'"));
  EXPECT_THAT(message_of(kGood + "time_dilation: 0\n"), HasSubstr("host.yaml:3: time_dilation"));
  EXPECT_THAT(message_of(kGood + "port: 70000\n"), HasSubstr("0 (any) to 65535"));
  EXPECT_THAT(message_of(kGood + "environment: [X]\n"), HasSubstr("'X' is not NAME=value"));
  EXPECT_THAT(message_of(kGood + "environment: [AWS_LAMBDA_RUNTIME_API=x]\n"),
              HasSubstr("set by the host"));
  EXPECT_THAT(message_of(kGood + "uplink_bytes_per_second: 0\n"), HasSubstr("above 0"));
  EXPECT_THAT(message_of(kGood + "faults: {kill_probability: 2}\n"), HasSubstr("0 to 1"));
  EXPECT_THAT(message_of(kGood + "faults: {kill_after_min: 2 s, kill_after_max: 1 s}\n"),
              HasSubstr("kill_after_max"));
  EXPECT_THAT(message_of("command: [/x]\nfunctions: [{name: f, memory_mb: 64}]\n"),
              HasSubstr("128 to 10240"));
  EXPECT_THAT(message_of("command: [/x]\nfunctions: [{name: a b, memory_mb: 512}]\n"),
              HasSubstr("letters"));
  EXPECT_THAT(
      message_of(
          "command: [/x]\nfunctions: [{name: f, memory_mb: 512}, {name: f, memory_mb: 512}]\n"),
      HasSubstr("stands twice"));
}

}  // namespace
}  // namespace funcpipe

// The aws command as an independent client of the local host's Invoke API.
#include <array>
#include <cstdio>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include "base/file.h"
#include "platform/testing_local_host.h"

namespace funcpipe {
namespace {

using nlohmann::json;
using testing::HasSubstr;

struct CommandResult {
  int status;
  std::string output;  // stdout and stderr
};

CommandResult run(const std::string& command) {
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  std::string output;
  std::array<char, 4096> buffer;
  for (std::size_t got = 0; (got = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    output.append(buffer.data(), got);
  }
  const int status = ::pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

class AwsCli : public testing::Test {
 protected:
  CommandResult aws(const std::string& arguments) {
    return run(
        "AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1 AWS_PAGER= "
        "AWS_EC2_METADATA_DISABLED=true AWS_MAX_ATTEMPTS=1 AWS_CONFIG_FILE=/dev/null "
        "/usr/bin/aws lambda " +
        arguments + " --output json --endpoint-url " + host_.endpoint());
  }
  CommandResult invoke(const std::string& function, const std::string& payload,
                       const std::string& more = "") {
    return aws("invoke --cli-binary-format raw-in-base64-out --function-name " + function +
               " --payload '" + payload + "' " + more + " " + answer_file());
  }
  std::string answer_file() const { return (folder_.path() / "answer.json").string(); }
  std::string answer() const { return read_text_file(answer_file()); }

  TemporaryDirectory folder_;
  TestingLocalHost host_;
};

TEST_F(AwsCli, InvokesFunctions) {
  const auto good = invoke("main", R"({"x": [1, 2]})", "--log-type Tail --query LogResult");
  ASSERT_EQ(good.status, 0) << good.output;
  EXPECT_EQ(answer(), R"({"x":[1,2]})");
  EXPECT_THAT(good.output, HasSubstr("U1RBUlQgUmVxdWVzdElkOi"));  // "START RequestId:" in base64

  const auto failed = invoke("main", R"({"do": "fail"})");
  ASSERT_EQ(failed.status, 0) << failed.output;
  EXPECT_EQ(json::parse(failed.output)["FunctionError"], "Unhandled");
  EXPECT_EQ(json::parse(answer())["errorType"], "Function.Failed");

  const auto event = invoke("main", "{}", "--invocation-type Event");
  ASSERT_EQ(event.status, 0) << event.output;
  EXPECT_EQ(json::parse(event.output)["StatusCode"], 202);
}

TEST_F(AwsCli, SeesErrorsByTheirNames) {
  const auto unknown = invoke("arn:aws:lambda:us-east-1:000000000000:function:nope", "{}");
  EXPECT_EQ(unknown.status, 254) << unknown.output;
  EXPECT_THAT(unknown.output,
              HasSubstr("(ResourceNotFoundException) when calling the Invoke operation"));
}

TEST_F(AwsCli, ListsFunctions) {
  const auto list = aws("list-functions --query 'Functions[].[FunctionName,MemorySize]'");
  ASSERT_EQ(list.status, 0) << list.output;
  EXPECT_EQ(json::parse(list.output),
            json::parse(R"([["main", 1769], ["half", 885], ["small", 160]])"));
}

}  // namespace
}  // namespace funcpipe

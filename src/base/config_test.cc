#include "base/config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace funcpipe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

ConfigNode config(std::string_view text) { return ConfigNode::from_text(text, "c.yaml"); }

// What the first error of `run` says.
template <typename Run>
std::string message_of(Run run, ErrorCode code = ErrorCode::kInvalidArgument) {
  try {
    run();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code);
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

template <typename T>
std::string message_reading(std::string_view text) {
  return message_of([&] { ConfigReader(config(text)).required<T>("k"); });
}

TEST(ConfigTest, ReadsEveryType) {
  ConfigReader reader(config("b: true\ni: -3\nd: 2.5\ns: some text\nt: 40 ms\nl: [1, 2]\nn:\n"));
  EXPECT_TRUE(reader.required<bool>("b"));
  EXPECT_EQ(reader.required<int>("i"), -3);
  EXPECT_EQ(reader.required<std::int64_t>("i"), -3);
  EXPECT_EQ(reader.required<double>("d"), 2.5);
  EXPECT_EQ(reader.required<std::string>("s"), "some text");
  EXPECT_EQ(reader.required<Duration>("t"), std::chrono::milliseconds(40));
  EXPECT_THAT(reader.optional_list<std::int64_t>("l"), ElementsAre(1, 2));
  EXPECT_TRUE(reader.required_node("n").is_null());
  EXPECT_EQ(reader.optional<std::int64_t>("absent", 7), 7);
  reader.finish();
}

TEST(ConfigTest, JsonIsYaml) {
  ConfigReader reader(config(R"({"a": {"b": [1, "x"]}, "c": null})"));
  EXPECT_EQ(reader.node().to_json(), nlohmann::json::parse(R"({"a": {"b": [1, "x"]}, "c": null})"));
}

TEST(ConfigTest, WrongTypesNameFileLineKeyAndValue) {
  EXPECT_EQ(message_reading<std::int64_t>("a: 1\nk: many\n"),
            "c.yaml:2: k: expected a whole number, got 'many'");
  EXPECT_EQ(message_reading<std::int64_t>("k: 1.5"),
            "c.yaml:1: k: expected a whole number, got '1.5'");
  EXPECT_EQ(message_reading<std::int64_t>("k: [1]"),
            "c.yaml:1: k: expected a whole number, got a list");
  EXPECT_THAT(message_reading<std::int64_t>("k: 99999999999999999999"), HasSubstr("whole number"));
  EXPECT_THAT(message_reading<int>("k: 4294967297"), HasSubstr("must be within -2147483648 and"));
  EXPECT_EQ(message_reading<double>("k: 1e"), "c.yaml:1: k: expected a number, got '1e'");
  EXPECT_THAT(message_reading<double>("k: .inf"), HasSubstr("expected a number"));
  EXPECT_THAT(message_reading<double>("k: .nan"), HasSubstr("expected a number"));
  EXPECT_EQ(message_reading<bool>("k: 1"), "c.yaml:1: k: expected true or false, got '1'");
  EXPECT_EQ(message_reading<std::string>("k: {a: 1}"), "c.yaml:1: k: expected text, got a map");
  EXPECT_EQ(message_reading<std::string>("k:"), "c.yaml:1: k: expected text, got nothing");
  EXPECT_EQ(message_reading<Duration>("k: 40"),
            "c.yaml:1: k: '40' is not a duration; write for example '40 ms'");
}

TEST(ConfigTest, MissingKeysNameTheMapThatLacksThem) {
  EXPECT_EQ(message_of([] { ConfigReader(config("a: 1")).required_node("k"); }),
            "c.yaml:1: key 'k' is missing");
  EXPECT_EQ(message_of([] {
              ConfigReader reader(config("a: 1\nsection:\n  x: 1\n"));
              ConfigReader(reader.required_node("section")).required_node("epochs");
            }),
            "c.yaml:2: section: key 'epochs' is missing");
  EXPECT_EQ(message_of([] { ConfigReader(config("")).required_node("k"); }),
            "c.yaml:1: key 'k' is missing");
}

TEST(ConfigTest, AMistypedRequiredKeyIsPointedAt) {
  EXPECT_EQ(message_of([] {
              ConfigReader(config("x: 1\nbach_size: 3\n")).required<std::int64_t>("batch_size");
            }),
            "c.yaml:2: bach_size: key 'batch_size' is missing; is this it?");
}

TEST(ConfigTest, UnknownKeysNameTheNearestKnownOne) {
  const auto finish = [](std::string_view text) {
    return message_of([&] {
      ConfigReader reader(config(text));
      ConfigReader section(reader.required_node("s"));
      section.optional<std::int64_t>("epochs", 1);
      section.optional<std::int64_t>("epochs", 1);
      section.optional<std::int64_t>("steps", 1);
      section.finish();
    });
  };
  EXPECT_EQ(finish("s:\n  steps: 1\n  epoch: 2\n"),
            "c.yaml:3: s.epoch: unknown key; did you mean 'epochs'?");
  EXPECT_EQ(finish("s:\n  colour: 2\n"),
            "c.yaml:2: s.colour: unknown key; known here: epochs, steps");
}

TEST(ConfigTest, AReaderWantsAMap) {
  EXPECT_EQ(message_of([] { ConfigReader reader(config("[1]")); }),
            "c.yaml:1: expected a map of keys, got a list");
  EXPECT_EQ(message_of([] {
              ConfigReader reader(config("\na: 3"));
              ConfigReader below(reader.required_node("a"));
            }),
            "c.yaml:2: a: expected a map of keys, got '3'");
  ConfigReader(config("")).finish();
}

TEST(ConfigTest, RejectPointsAtTheKeyOrItsMap) {
  ConfigReader reader(config("a: 1\nb: 2\n"));
  EXPECT_EQ(message_of([&] { reader.reject("b", "is odd"); }), "c.yaml:2: b: is odd");
  EXPECT_EQ(message_of([&] { reader.reject("c", "is odd"); }), "c.yaml:1: c: is odd");
}

TEST(ConfigTest, ListItemsKnowTheirPlace) {
  ConfigReader reader(config("l:\n- 1\n- two\n"));
  EXPECT_EQ(message_of([&] { reader.optional_list<std::int64_t>("l"); }),
            "c.yaml:3: l[1]: expected a whole number, got 'two'");
  EXPECT_EQ(message_of([] { config("a: 1").items(); }), "c.yaml:1: expected a list, got a map");
}

TEST(ConfigTest, BrokenDocuments) {
  const auto message = [](std::string_view text) { return message_of([&] { config(text); }); };
  EXPECT_THAT(message("a: 1\nb: [1, 2\n"), HasSubstr("c.yaml:3: not valid YAML"));
  EXPECT_THAT(message("a: 1\n\tb: 2\n"), HasSubstr("c.yaml:2: not valid YAML"));
  EXPECT_EQ(message("a: 1\nb: 2\na: 3\n"), "c.yaml:3: key 'a' stands twice");
  EXPECT_EQ(message("s:\n- {x: 1, x: 2}\n"), "c.yaml:2: key 'x' stands twice");
  EXPECT_EQ(message("[a, b]: 1\n"), "c.yaml:1: a list stands where a key must be");
  EXPECT_EQ(message("a: 1\n---\nb: 1\n"), "c.yaml:3: a second document; only one is read");
  EXPECT_THAT(message("a: &x [*x]\n"), HasSubstr("nested more than"));
  std::string bomb = "a0: &a0 [1]\n";
  for (int i = 1; i < 30; ++i) bomb += fmt::format("a{0}: &a{0} [*a{1}, *a{1}]\n", i, i - 1);
  EXPECT_THAT(message(bomb), HasSubstr("aliases expand"));
  EXPECT_THAT(message(std::string(5000, '[')), HasSubstr("c.yaml:1: not valid YAML"));
}

TEST(ConfigTest, FilesAreNamed) {
  const TemporaryDirectory folder;
  const auto path = folder.path() / "job.yaml";
  EXPECT_THAT(message_of([&] { ConfigNode::from_file(path); }, ErrorCode::kNotFound),
              HasSubstr(path.string()));
  write_file(path, "a: x\n");
  EXPECT_EQ(message_of([&] { ConfigReader(ConfigNode::from_file(path)).required<double>("a"); }),
            path.string() + ":1: a: expected a number, got 'x'");
}

TEST(ConfigTest, OverrideReplacesAndAdds) {
  auto root = config("a:\n  b: 1\nlist: [1, 2]\n");
  root.override("a.b=2");
  root.override("a.c.d=[3, 4]");
  root.override("x.y=text = more");
  root.override("list={k: 1}");
  EXPECT_EQ(root.to_json(), nlohmann::json::parse(R"({
    "a": {"b": 2, "c": {"d": [3, 4]}}, "x": {"y": "text = more"}, "list": {"k": 1}})"));
  auto empty = config("");
  empty.override("a=1");
  EXPECT_EQ(empty.to_json(), nlohmann::json::parse(R"({"a": 1})"));
}

TEST(ConfigTest, OverrideErrors) {
  const auto message = [](std::string_view assignment) {
    return message_of([&] { config("a: 1\nl: [1]\n").override(assignment); });
  };
  EXPECT_EQ(message("a"), "--set a: write --set section.key=value");
  EXPECT_EQ(message("=1"), "--set =1: write --set section.key=value");
  EXPECT_EQ(message("x..y=1"), "--set x..y=1: empty key");
  EXPECT_EQ(message("a.b=1"), "--set a.b=1: 'b' is inside '1', which is not a map");
  EXPECT_EQ(message("l.b=1"), "--set l.b=1: 'b' is inside a list, which is not a map");
  EXPECT_THAT(message("a=[1"), HasSubstr("--set a=[1:1: not valid YAML"));
}

TEST(ConfigTest, ErrorsNameTheAssignmentThatCausedThem) {
  auto root = config("s:\n  n: 1\n  l: [1]\n");
  root.override("s.n=few");
  root.override("s.l=[1, two]");
  root.override("s.ll=3");
  root.override("new.n=1");
  ConfigReader reader(root);
  ConfigReader section(reader.required_node("s"));
  EXPECT_EQ(message_of([&] { section.required<double>("n"); }),
            "--set s.n=few: s.n: expected a number, got 'few'");
  EXPECT_EQ(message_of([&] { section.optional_list<double>("l"); }),
            "--set s.l=[1, two]: s.l[1]: expected a number, got 'two'");
  EXPECT_EQ(message_of([&] { section.finish(); }),
            "--set s.ll=3: s.ll: unknown key; did you mean 'l'?");
  EXPECT_EQ(message_of([&] { ConfigReader(reader.required_node("new")).required_node("k"); }),
            "c.yaml: new: key 'k' is missing");
}

TEST(ConfigTest, TheLastAssignmentOfAPathIsTheOneNamed) {
  auto root = config("s: {n: 1}\n");
  root.override("s.n=a");
  root.override("s={n: b}");
  EXPECT_THAT(message_of([&] {
                ConfigReader reader(root);
                ConfigReader(reader.required_node("s")).required<double>("n");
              }),
              HasSubstr("--set s={n: b}: s.n: "));
  root.override("s.n=c");
  EXPECT_THAT(message_of([&] {
                ConfigReader reader(root);
                ConfigReader(reader.required_node("s")).required<double>("n");
              }),
              HasSubstr("--set s.n=c: s.n: "));
}

TEST(ConfigTest, ScalarsBecomeTypedJson) {
  EXPECT_EQ(
      config("{i: 3, d: 0.5, t: true, s: relu, q: '3', inf: .inf, n: }").to_json(),
      nlohmann::json::parse(
          R"({"i": 3, "d": 0.5, "t": true, "s": "relu", "q": "3", "inf": ".inf", "n": null})"));
}

TEST(ConfigTest, WritesYamlThatReadsBack) {
  const auto root = config("a: {b: [1, x], c: 'y: z'}\n");
  EXPECT_EQ(config(root.to_yaml()).to_json(), root.to_json());
}

TEST(ConfigTest, Nearest) {
  const std::vector<std::string> words = {"epochs", "steps", "batch_size"};
  EXPECT_EQ(nearest("epoch", words), "epochs");
  EXPECT_EQ(nearest("batchsize", words), "batch_size");
  EXPECT_EQ(nearest("learning_rate", words), std::nullopt);
  EXPECT_EQ(nearest("", words), std::nullopt);
  EXPECT_EQ(nearest("x", {}), std::nullopt);
}

}  // namespace
}  // namespace funcpipe

// docs/job.md and the examples cannot drift from the parser.
#include <filesystem>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "core/job.h"

namespace funcpipe {
namespace {

const std::filesystem::path kSource = FUNCPIPE_SOURCE_DIR;

JobSpec parse(const std::string& text, const std::string& name) {
  return JobSpec::from_config(ConfigNode::from_text(text, name));
}

// The blocks of docs/job.md that are marked as jobs.
std::vector<std::string> documented_jobs() {
  std::istringstream lines(read_text_file(kSource / "docs" / "job.md"));
  std::vector<std::string> blocks;
  bool inside = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("```")) {
      inside = line == "```yaml job";
      if (inside) blocks.emplace_back();
    } else if (inside) {
      blocks.back() += line + "\n";
    }
  }
  return blocks;
}

void collect_keys(const nlohmann::json& json, std::set<std::string>& keys) {
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys.insert(key);
    if (key != "options") collect_keys(value, keys);
  }
}

TEST(JobDocsTest, EveryJobInTheDocumentationParses) {
  const auto jobs = documented_jobs();
  ASSERT_GE(jobs.size(), 5U);
  for (const auto& job : jobs) EXPECT_NO_THROW(parse(job, "docs/job.md")) << job;
}

TEST(JobDocsTest, EveryExampleParses) {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kSource / "examples")) {
    if (entry.path().extension() != ".yaml") continue;
    EXPECT_NO_THROW(JobSpec::from_config(ConfigNode::from_file(entry.path()))) << entry.path();
    ++count;
  }
  EXPECT_GE(count, 3);
}

// Written jobs name every key of their sections; these two name every section and every kind.
TEST(JobDocsTest, EveryKeyIsDocumented) {
  std::set<std::string> keys = {"archive", "stages"};  // the alternatives of builtin and cuts
  for (const auto* kinds : {"optimizer: {kind: sgd}, schedule: {kind: step, every_steps: 1}",
                            "optimizer: {kind: adam}, schedule: {kind: cosine}, steps: 1"}) {
    const auto job =
        parse(fmt::format("model: {{builtin: mlp}}\n"
                          "data: {{train: d, test: t, normalize: {{mean: 0, std: 1}}}}\n"
                          "training: {{batch_size: 1, {}}}\nplan: {{cuts: [1]}}\nstore: s\n",
                          kinds),
              "full");
    collect_keys(job.to_json(), keys);
  }
  AutoPlanSpec wishes{PlanObjective::kWeighted, 1, 1, 1, 1, 1, {1}, {1}, "p"};
  wishes.merge = 1;
  wishes.time_limit_seconds = 1;
  collect_keys(wishes.to_json(), keys);
  EXPECT_GE(keys.size(), 45U);
  const auto text = read_text_file(kSource / "docs" / "job.md");
  for (const auto& key : keys) {
    const bool documented = text.find("`" + key + "`") != std::string::npos ||
                            text.find("." + key + "`") != std::string::npos;
    EXPECT_TRUE(documented) << "docs/job.md does not document `" << key << "`";
  }
}

}  // namespace
}  // namespace funcpipe

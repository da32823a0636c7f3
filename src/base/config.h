// Strict reading of YAML and JSON documents: every error names file, line and key path, and the
// nearest right key.
//
//   ConfigNode job = ConfigNode::from_file("job.yaml");
//   ConfigReader reader(job);
//   auto epochs = reader.required<std::int64_t>("epochs");
//   auto lr = reader.optional<double>("lr", 0.1);
//   reader.finish();                       // throws if the map holds a key that nobody asked for
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>
#include <yaml-cpp/yaml.h>

#include "base/error.h"
#include "base/units.h"

namespace funcpipe {

// A node of a document that knows where it stands. Cheap to copy; not thread-safe.
class ConfigNode {
 public:
  // Both throw Error(kInvalidArgument) with file and line for broken YAML (JSON is YAML here), a
  // key that stands twice or a second document; the first throws kNotFound for no file.
  static ConfigNode from_file(const std::filesystem::path& path);
  static ConfigNode from_text(std::string_view text, std::string name);

  // Sets `a.b.c` to the YAML value `value`, making maps on the way: for `--set a.b=c`. Errors about
  // the value then name the assignment instead of file and line. Throws kInvalidArgument when a
  // scalar or a list stands in the way. Only for the root; other nodes of the document see it too.
  void override(std::string_view assignment);

  bool is_map() const { return node_.IsMap(); }
  bool is_list() const { return node_.IsSequence(); }
  bool is_scalar() const { return node_.IsScalar(); }
  bool is_null() const { return !node_.IsDefined() || node_.IsNull(); }

  // The value as T: bool, int, std::int64_t, double, std::string, Duration (through
  // parse_duration).
  template <typename T>
  T as() const;
  std::vector<ConfigNode> items() const;  // of a list

  // "job.yaml:12: training.batch_size", or "--set training.batch_size=0: training.batch_size"
  std::string where() const;
  // Throws Error(kInvalidArgument): "<where>: <message>".
  [[noreturn]] void reject(const std::string& message) const;
  // The whole document or subtree as YAML text, and as JSON (scalars typed by YAML's rules: 3, 0.5,
  // true, text).
  std::string to_yaml() const;
  nlohmann::json to_json() const;

 private:
  friend class ConfigReader;
  // What all nodes of a document share: its name, and the assignments of override by key path.
  struct Origin {
    std::string name;
    std::map<std::string, std::string, std::less<>> assignments;
    const std::string* assignment_of(std::string_view path) const;
  };

  ConfigNode(const YAML::Node& node, std::shared_ptr<Origin> origin, std::string path, int line)
      : node_(node), origin_(std::move(origin)), path_(std::move(path)), line_(line) {}
  ConfigNode child(const YAML::Node& node, std::string path) const;

  YAML::Node node_;
  std::shared_ptr<Origin> origin_;
  std::string path_;
  int line_;  // 1-based; 0: a map that override made
};

// Reads the keys of one map and notices those nobody asked for.
class ConfigReader {
 public:
  // Throws when `node` is not a map (an absent node counts as an empty map).
  explicit ConfigReader(ConfigNode node);

  bool has(std::string_view key) const;
  // The child under `key`; the first form throws when it is missing (naming a key that looks like
  // it, if there is one), the second gives nothing.
  ConfigNode required_node(std::string_view key);
  std::optional<ConfigNode> optional_node(std::string_view key);

  template <typename T>
  T required(std::string_view key) {
    return required_node(key).as<T>();
  }
  template <typename T>
  T optional(std::string_view key, T fallback) {
    const auto node = optional_node(key);
    return node ? node->as<T>() : fallback;
  }
  template <typename T>
  std::vector<T> optional_list(std::string_view key) {
    std::vector<T> values;
    if (const auto node = optional_node(key)) {
      for (const auto& item : node->items()) values.push_back(item.as<T>());
    }
    return values;
  }

  void finish() const;
  const ConfigNode& node() const { return node_; }
  // Like ConfigNode::reject, for the key's own line.
  [[noreturn]] void reject(std::string_view key, const std::string& message) const;

 private:
  ConfigNode child(std::string_view key) const;
  std::vector<std::string> unknown_keys() const;  // asked for by nobody so far

  ConfigNode node_;
  std::vector<std::string> known_;
};

// The member of `candidates` with the smallest edit distance to `word`, or nothing when all are
// far.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates);

template <>
bool ConfigNode::as<bool>() const;
template <>
int ConfigNode::as<int>() const;
template <>
std::int64_t ConfigNode::as<std::int64_t>() const;
template <>
double ConfigNode::as<double>() const;
template <>
std::string ConfigNode::as<std::string>() const;
template <>
Duration ConfigNode::as<Duration>() const;

}  // namespace funcpipe

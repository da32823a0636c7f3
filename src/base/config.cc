#include "base/config.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/ranges.h>

#include "base/file.h"

namespace funcpipe {
namespace {

std::string join_path(const std::string& parent, std::string_view key) {
  return parent.empty() ? std::string(key) : fmt::format("{}.{}", parent, key);
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

std::string shown(const YAML::Node& node) {
  if (node.IsScalar()) return fmt::format("'{}'", node.Scalar());
  if (node.IsMap()) return "a map";
  if (node.IsSequence()) return "a list";
  return "nothing";
}

YAML::Node parse(std::string_view text, const std::string& name) {
  try {
    return YAML::Load(std::string(text));
  } catch (const YAML::Exception& error) {
    fail(ErrorCode::kInvalidArgument, "{}:{}: not valid YAML: {}", name, error.mark.line + 1,
         error.msg);
  }
}

void check_unique_keys(const YAML::Node& node, const std::string& name) {
  if (node.IsSequence()) {
    for (const auto& item : node) check_unique_keys(item, name);
  }
  if (!node.IsMap()) return;
  std::vector<std::string> seen;
  for (const auto& entry : node) {
    const auto key = entry.first.IsScalar() ? entry.first.Scalar() : std::string("?");
    if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
      fail(ErrorCode::kInvalidArgument, "{}:{}: key '{}' stands twice", name,
           entry.first.Mark().line + 1, key);
    }
    seen.push_back(key);
    check_unique_keys(entry.second, name);
  }
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  std::size_t best_distance = std::max<std::size_t>(2, word.size() / 2) + 1;
  for (const auto& candidate : candidates) {
    const auto distance = edit_distance(word, candidate);
    if (distance < best_distance) {
      best_distance = distance;
      best = candidate;
    }
  }
  return best;
}

ConfigNode ConfigNode::from_file(const std::filesystem::path& path) {
  return from_text(read_text_file(path), path.string());
}

ConfigNode ConfigNode::from_text(std::string_view text, std::string name) {
  YAML::Node root = parse(text, name);
  check_unique_keys(root, name);
  return {std::move(root), std::make_shared<const std::string>(std::move(name)), "", 1};
}

ConfigNode ConfigNode::child(const YAML::Node& node, std::string path) const {
  return {node, file_, std::move(path), node.IsDefined() ? node.Mark().line + 1 : line_};
}

void ConfigNode::override(std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    fail(ErrorCode::kInvalidArgument, "--set {}: write --set section.key=value", assignment);
  }
  const YAML::Node value =
      parse(assignment.substr(equals + 1), fmt::format("--set {}", assignment));
  std::string_view path = assignment.substr(0, equals);
  YAML::Node at = node_;  // a handle on the shared tree: reset() moves the handle, never the tree
  while (true) {
    const auto dot = path.find('.');
    const std::string key(path.substr(0, dot));
    if (key.empty()) fail(ErrorCode::kInvalidArgument, "--set {}: empty key", assignment);
    if (at.IsDefined() && !at.IsNull() && !at.IsMap()) {
      fail(ErrorCode::kInvalidArgument, "--set {}: '{}' is inside {}, which is not a map",
           assignment, key, shown(at));
    }
    if (dot == std::string_view::npos) {
      at[key] = value;
      return;
    }
    at.reset(at[key]);
    path.remove_prefix(dot + 1);
  }
}

std::string ConfigNode::where() const {
  const std::string place =
      line_ > 0 ? fmt::format("{}:{}", *file_, line_) : fmt::format("{} (--set)", *file_);
  return path_.empty() ? place : fmt::format("{}: {}", place, path_);
}

void ConfigNode::reject(const std::string& message) const {
  throw Error(ErrorCode::kInvalidArgument, fmt::format("{}: {}", where(), message));
}

std::string ConfigNode::to_yaml() const {
  YAML::Emitter out;
  out << node_;
  return std::string(out.c_str()) + "\n";
}

nlohmann::json ConfigNode::to_json() const {
  if (is_null()) return nullptr;
  if (is_list()) {
    auto list = nlohmann::json::array();
    for (const auto& item : items()) list.push_back(item.to_json());
    return list;
  }
  if (is_map()) {
    auto map = nlohmann::json::object();
    for (const auto& entry : node_) {
      map[entry.first.Scalar()] =
          child(entry.second, join_path(path_, entry.first.Scalar())).to_json();
    }
    return map;
  }
  if (node_.Tag() == "!") return node_.Scalar();  // quoted
  std::int64_t whole = 0;
  double number = 0;
  bool flag = false;
  if (YAML::convert<std::int64_t>::decode(node_, whole)) return whole;
  if (YAML::convert<double>::decode(node_, number)) return number;
  if (YAML::convert<bool>::decode(node_, flag)) return flag;
  return node_.Scalar();
}

std::vector<ConfigNode> ConfigNode::items() const {
  if (!node_.IsSequence()) reject(fmt::format("expected a list, got {}", shown(node_)));
  std::vector<ConfigNode> result;
  std::size_t index = 0;
  for (const auto& item : node_)
    result.push_back(child(item, fmt::format("{}[{}]", path_, index++)));
  return result;
}

template <>
bool ConfigNode::as<bool>() const {
  bool value = false;
  if (!node_.IsScalar() || !YAML::convert<bool>::decode(node_, value)) {
    reject(fmt::format("expected true or false, got {}", shown(node_)));
  }
  return value;
}

template <>
std::int64_t ConfigNode::as<std::int64_t>() const {
  if (node_.IsScalar()) {
    const std::string& text = node_.Scalar();
    std::size_t used = 0;
    try {
      const auto value = std::stoll(text, &used);
      if (used == text.size()) return value;
    } catch (const std::exception&) {
    }
  }
  reject(fmt::format("expected a whole number, got {}", shown(node_)));
}

template <>
double ConfigNode::as<double>() const {
  double value = 0;
  if (!node_.IsScalar() || !YAML::convert<double>::decode(node_, value) || !std::isfinite(value)) {
    reject(fmt::format("expected a number, got {}", shown(node_)));
  }
  return value;
}

template <>
std::string ConfigNode::as<std::string>() const {
  if (!node_.IsScalar()) reject(fmt::format("expected text, got {}", shown(node_)));
  return node_.Scalar();
}

template <>
Duration ConfigNode::as<Duration>() const {
  const auto text = as<std::string>();
  try {
    return parse_duration(text);
  } catch (const Error& error) {
    reject(error.what());
  }
}

ConfigReader::ConfigReader(ConfigNode node) : node_(std::move(node)) {
  if (!node_.is_null() && !node_.is_map()) {
    node_.reject(fmt::format("expected a map of keys, got {}", shown(node_.node_)));
  }
}

bool ConfigReader::has(std::string_view key) const {
  return node_.is_map() && std::as_const(node_.node_)[std::string(key)].IsDefined();
}

std::optional<ConfigNode> ConfigReader::optional_node(std::string_view key) {
  known_.emplace_back(key);
  if (!has(key)) return std::nullopt;
  return node_.child(std::as_const(node_.node_)[std::string(key)], join_path(node_.path_, key));
}

ConfigNode ConfigReader::required_node(std::string_view key) {
  auto node = optional_node(key);
  if (!node) node_.reject(fmt::format("key '{}' is missing", join_path(node_.path_, key)));
  return *node;
}

void ConfigReader::finish() const {
  if (!node_.is_map()) return;
  for (const auto& entry : node_.node_) {
    const auto key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const auto close = nearest(key, known_);
    const auto at = node_.child(entry.first, join_path(node_.path_, key));
    at.reject(close ? fmt::format("unknown key; did you mean '{}'?", *close)
                    : fmt::format("unknown key; known here: {}", fmt::join(known_, ", ")));
  }
}

void ConfigReader::reject(std::string_view key, const std::string& message) const {
  if (!has(key)) node_.reject(fmt::format("{}: {}", join_path(node_.path_, key), message));
  node_.child(std::as_const(node_.node_)[std::string(key)], join_path(node_.path_, key))
      .reject(message);
}

}  // namespace funcpipe

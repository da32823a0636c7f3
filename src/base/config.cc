#include "base/config.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
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

int line_of(const YAML::Mark& mark) { return mark.line + 1; }

// Deeper documents are mistakes, or aliases that contain themselves.
constexpr int kMaxDepth = 64;
// A few lines of aliases of aliases can stand for more values than a machine has memory.
constexpr std::int64_t kMaxNodes = 2'000'000;

// Walks over a document as its readers will, aliases followed.
class StructureCheck {
 public:
  explicit StructureCheck(const std::string& name) : name_(name) {}

  void visit(const YAML::Node& node, int depth = 0) {
    if (depth > kMaxDepth) reject(node, fmt::format("nested more than {} deep", kMaxDepth));
    if (++visited_ > kMaxNodes) {
      reject(node, fmt::format("its aliases expand to more than {} values", kMaxNodes));
    }
    if (node.IsSequence()) {
      for (const auto& item : node) visit(item, depth + 1);
    }
    if (node.IsMap()) visit_map(node, depth);
  }

 private:
  void visit_map(const YAML::Node& node, int depth) {
    std::set<std::string> seen;
    for (const auto& entry : node) {
      const auto& key = entry.first;
      if (!key.IsScalar()) reject(key, fmt::format("{} stands where a key must be", shown(key)));
      if (!seen.insert(key.Scalar()).second) {
        reject(key, fmt::format("key '{}' stands twice", key.Scalar()));
      }
      visit(entry.second, depth + 1);
    }
  }

  [[noreturn]] void reject(const YAML::Node& node, const std::string& what) const {
    fail(ErrorCode::kInvalidArgument, "{}:{}: {}", name_, line_of(node.Mark()), what);
  }

  const std::string& name_;
  std::int64_t visited_ = 0;
};

YAML::Node parse(std::string_view text, const std::string& name) {
  try {
    auto documents = YAML::LoadAll(std::string(text));
    if (documents.empty()) return YAML::Node(YAML::NodeType::Null);
    if (documents.size() > 1) {
      fail(ErrorCode::kInvalidArgument, "{}:{}: a second document; only one is read", name,
           line_of(documents[1].Mark()));
    }
    StructureCheck(name).visit(documents[0]);
    return documents[0];
  } catch (const YAML::Exception& error) {
    fail(ErrorCode::kInvalidArgument, "{}:{}: not valid YAML: {}", name, line_of(error.mark),
         error.msg);
  }
}

// Whether `path` is `parent` or a key or list item below it.
bool is_at_or_below(std::string_view path, std::string_view parent) {
  if (!path.starts_with(parent)) return false;
  return path.size() == parent.size() || path[parent.size()] == '.' || path[parent.size()] == '[';
}

}  // namespace

std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  std::optional<std::string> best;
  // Half of a word may differ, or two characters of a short one, but not all of it.
  std::size_t best_distance = std::min(std::max<std::size_t>(2, word.size() / 2) + 1, word.size());
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
  const auto root = parse(text, name);
  return {root, std::make_shared<Origin>(Origin{std::move(name), {}}), "", 1};
}

const std::string* ConfigNode::Origin::assignment_of(std::string_view path) const {
  const std::string* nearest_above = nullptr;
  for (const auto& [set, assignment] : assignments) {  // sorted: a longer path comes later
    if (is_at_or_below(path, set)) nearest_above = &assignment;
  }
  return nearest_above;
}

ConfigNode ConfigNode::child(const YAML::Node& node, std::string path) const {
  return {node, origin_, std::move(path), node.IsDefined() ? line_of(node.Mark()) : line_};
}

void ConfigNode::override(std::string_view assignment) {
  const auto equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    fail(ErrorCode::kInvalidArgument, "--set {}: write --set section.key=value", assignment);
  }
  const auto value = parse(assignment.substr(equals + 1), fmt::format("--set {}", assignment));
  const std::string path(assignment.substr(0, equals));
  YAML::Node at = node_;  // a handle on the shared tree: reset() moves the handle, never the tree
  for (std::size_t begin = 0, dot = 0; dot != std::string::npos; begin = dot + 1) {
    dot = path.find('.', begin);
    const auto key = path.substr(begin, dot - begin);
    if (key.empty()) fail(ErrorCode::kInvalidArgument, "--set {}: empty key", assignment);
    if (at.IsDefined() && !at.IsNull() && !at.IsMap()) {
      fail(ErrorCode::kInvalidArgument, "--set {}: '{}' is inside {}, which is not a map",
           assignment, key, shown(at));
    }
    if (dot == std::string::npos)
      at[key] = value;
    else
      at.reset(at[key]);
  }
  std::erase_if(origin_->assignments,
                [&](const auto& earlier) { return is_at_or_below(earlier.first, path); });
  origin_->assignments[path] = fmt::format("--set {}", assignment);
}

std::string ConfigNode::where() const {
  const auto* assignment = origin_->assignment_of(path_);
  const auto place = assignment  ? *assignment
                     : line_ > 0 ? fmt::format("{}:{}", origin_->name, line_)
                                 : origin_->name;
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
  if (YAML::convert<double>::decode(node_, number) && std::isfinite(number)) return number;
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
int ConfigNode::as<int>() const {
  const auto value = as<std::int64_t>();
  if (!std::in_range<int>(value)) {
    reject(fmt::format("must be within {} and {}, is {}", std::numeric_limits<int>::min(),
                       std::numeric_limits<int>::max(), value));
  }
  return static_cast<int>(value);
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

bool ConfigReader::has(std::string_view key) const { return child(key).node_.IsDefined(); }

// Stands at the line of its key, or of the map when it is missing.
ConfigNode ConfigReader::child(std::string_view key) const {
  auto path = join_path(node_.path_, key);
  if (node_.is_map()) {
    for (const auto& entry : node_.node_) {
      if (entry.first.Scalar() != key) continue;
      return {entry.second, node_.origin_, std::move(path), line_of(entry.first.Mark())};
    }
  }
  return {YAML::Node(YAML::NodeType::Undefined), node_.origin_, std::move(path), node_.line_};
}

std::vector<std::string> ConfigReader::unknown_keys() const {
  std::vector<std::string> unknown;
  if (!node_.is_map()) return unknown;
  for (const auto& entry : node_.node_) {
    const auto& key = entry.first.Scalar();
    if (std::find(known_.begin(), known_.end(), key) == known_.end()) unknown.push_back(key);
  }
  return unknown;
}

std::optional<ConfigNode> ConfigReader::optional_node(std::string_view key) {
  if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
  auto node = child(key);
  return node.node_.IsDefined() ? std::optional(std::move(node)) : std::nullopt;
}

ConfigNode ConfigReader::required_node(std::string_view key) {
  if (auto node = optional_node(key)) return *node;
  const auto close = nearest(key, unknown_keys());
  if (!close) node_.reject(fmt::format("key '{}' is missing", key));
  child(*close).reject(fmt::format("key '{}' is missing; is this it?", key));
}

void ConfigReader::finish() const {
  const auto unknown = unknown_keys();
  if (unknown.empty()) return;
  const auto close = nearest(unknown.front(), known_);
  child(unknown.front())
      .reject(close ? fmt::format("unknown key; did you mean '{}'?", *close)
                    : fmt::format("unknown key; known here: {}", fmt::join(known_, ", ")));
}

void ConfigReader::reject(std::string_view key, const std::string& message) const {
  child(key).reject(message);
}

}  // namespace funcpipe

#include "schedule/task.h"

#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace funcpipe {
namespace {

struct KindFacts {
  std::string_view name;
  Lane lane;
};
constexpr std::array<KindFacts, 18> kFacts = {{
    {"load input", Lane::kDownlink},
    {"load target", Lane::kDownlink},
    {"receive activation", Lane::kDownlink},
    {"forward", Lane::kCompute},
    {"send activation", Lane::kUplink},
    {"receive gradient", Lane::kDownlink},
    {"backward", Lane::kCompute},
    {"send gradient", Lane::kUplink},
    {"pack values", Lane::kCompute},
    {"send split", Lane::kUplink},
    {"receive split", Lane::kDownlink},
    {"reduce split", Lane::kCompute},
    {"send merged", Lane::kUplink},
    {"receive merged", Lane::kDownlink},
    {"measure norm", Lane::kCompute},
    {"send norm", Lane::kUplink},
    {"receive norm", Lane::kDownlink},
    {"update", Lane::kCompute},
}};

}  // namespace

std::string_view to_string(Lane lane) {
  constexpr std::array<std::string_view, kLaneCount> names = {"compute", "uplink", "downlink"};
  return names.at(static_cast<std::size_t>(lane));
}

std::string_view to_string(TaskKind kind) { return kFacts.at(static_cast<std::size_t>(kind)).name; }

Lane lane_of(TaskKind kind) { return kFacts.at(static_cast<std::size_t>(kind)).lane; }

std::string describe(const Task& task) {
  std::string text(to_string(task.kind));
  if (task.micro_batch >= 0) text += fmt::format(" {}", task.micro_batch);
  if (task.peer >= 0) text += fmt::format(" peer {}", task.peer);
  return text;
}

std::string print(const TaskList& tasks) {
  std::string text;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    text += fmt::format("{:>3} {:<8} {}", i, to_string(tasks[i].lane()), describe(tasks[i]));
    if (!tasks[i].after.empty()) text += fmt::format("  after {}", fmt::join(tasks[i].after, ", "));
    text += '\n';
  }
  return text;
}

}  // namespace funcpipe

#include "report/frontier_report.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"

namespace funcpipe {
namespace {

int replicas(const PlanningProblem& problem, const Solution& solution) {
  return problem.degrees[static_cast<std::size_t>(solution.degree)].replicas;
}

int memory_mb(const PlanningProblem& problem, const StageChoice& stage) {
  return problem.options[static_cast<std::size_t>(stage.option)].memory_mb;
}

// "3 x 1024, 2048": runs of equal memory sizes.
std::string memory_text(const PlanningProblem& problem, const Solution& solution) {
  std::string text;
  for (std::size_t k = 0; k < solution.stages.size();) {
    const int memory = memory_mb(problem, solution.stages[k]);
    auto next = k;
    while (next < solution.stages.size() && memory_mb(problem, solution.stages[next]) == memory)
      ++next;
    text += text.empty() ? "" : ", ";
    text += next - k > 1 ? fmt::format("{} x {}", next - k, memory) : fmt::format("{}", memory);
    k = next;
  }
  return text;
}

std::string shape_text(const PlanningProblem& problem, const Solution& solution) {
  return fmt::format("{} stages x {} replicas", solution.stages.size(),
                     replicas(problem, solution));
}

// Maps values to pixels, and finds round places for marks.
class Axis {
 public:
  Axis(double least, double most, double from_pixel, double to_pixel)
      : from_(from_pixel), to_(to_pixel) {
    const double margin = most > least ? 0.05 * (most - least) : std::max(1e-12, 0.05 * most);
    least_ = std::max(0.0, least - margin);
    most_ = most + margin;
  }
  double pixel(double value) const {
    return from_ + (value - least_) / (most_ - least_) * (to_ - from_);
  }
  std::vector<double> marks() const {
    const double rough = (most_ - least_) / 5;
    const double power = std::pow(10, std::floor(std::log10(rough)));
    double step = power;
    for (const double factor : {2.0, 5.0, 10.0})
      if (step < rough) step = factor * power;
    std::vector<double> marks;
    for (auto i = std::ceil(least_ / step); i * step <= most_; ++i) marks.push_back(i * step);
    return marks;
  }

 private:
  double least_, most_, from_, to_;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (c == '<') {
      result += "&lt;";
    } else if (c == '&') {
      result += "&amp;";
    } else {
      result += c;
    }
  }
  return result;
}

constexpr double kWidth = 760, kHeight = 480, kLeft = 100, kRight = 730, kTop = 50, kBottom = 420;

std::string grid(const Axis& x, const Axis& y) {
  std::string svg;
  for (const double mark : x.marks()) {
    svg += fmt::format(
        "<line class='grid' x1='{0:.1f}' x2='{0:.1f}' y1='{1}' y2='{2}'/><text x='{0:.1f}' "
        "y='{3}' text-anchor='middle'>{4:.4g}</text>\n",
        x.pixel(mark), kTop, kBottom, kBottom + 18, mark);
  }
  for (const double mark : y.marks()) {
    svg += fmt::format(
        "<line class='grid' x1='{1}' x2='{2}' y1='{0:.1f}' y2='{0:.1f}'/><text x='{3}' "
        "y='{4:.1f}' text-anchor='end'>{5:.4g}</text>\n",
        y.pixel(mark), kLeft, kRight, kLeft - 8, y.pixel(mark) + 4, mark);
  }
  return svg;
}

// Between two points of a frontier nothing is better than the dearer one: the line is a staircase.
std::string staircase(const Frontier& frontier, const Axis& x, const Axis& y) {
  std::string path;
  double last_y = 0;
  for (const auto& point : frontier.points) {
    const double px = x.pixel(point.seconds), py = y.pixel(point.usd);
    path += path.empty() ? fmt::format("M{:.1f} {:.1f}", px, py)
                         : fmt::format(" L{:.1f} {:.1f} L{:.1f} {:.1f}", px, last_y, px, py);
    last_y = py;
  }
  return fmt::format("<path class='line' d='{}'/>\n", path);
}

}  // namespace

std::string frontier_table(const PlanningProblem& problem, const Frontier& frontier,
                           std::optional<std::size_t> recommended) {
  auto text = fmt::format("{:>12}  {:>14}  {:>6}  {:>8}  {:>9}  {}\n", "iteration", "cost",
                          "stages", "replicas", "functions", "memory of the stages (MB)");
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    const auto& point = frontier.points[i];
    const auto stages = point.solution.stages.size();
    const auto degree = replicas(problem, point.solution);
    text +=
        fmt::format("{:>10.4f} s  {:>14}  {:>6}  {:>8}  {:>9}  {}{}\n", point.seconds,
                    fmt::format("${:.8f}", point.usd), stages, degree,
                    stages * static_cast<std::size_t>(degree), memory_text(problem, point.solution),
                    i == recommended ? "  <- recommended" : "");
  }
  text += fmt::format("{} plans, {}, in {}\n", frontier.points.size(),
                      frontier.complete ? "none is better in time and cost (proved)"
                                        : "stopped before all were found",
                      format_duration(from_seconds(frontier.solver_seconds)));
  return text;
}

nlohmann::json frontier_json(const PlanningProblem& problem, const Frontier& frontier,
                             std::optional<std::size_t> recommended) {
  auto points = nlohmann::json::array();
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    const auto& point = frontier.points[i];
    auto stages = nlohmann::json::array();
    for (const auto& stage : point.solution.stages) {
      stages.push_back({{"first_layer", stage.first},
                        {"last_layer", stage.last},
                        {"memory_mb", memory_mb(problem, stage)}});
    }
    points.push_back({{"iteration_seconds", point.seconds},
                      {"iteration_usd", point.usd},
                      {"replicas", replicas(problem, point.solution)},
                      {"stages", std::move(stages)},
                      {"recommended", i == recommended}});
  }
  return {{"funcpipe_frontier", 1},
          {"complete", frontier.complete},
          {"solver_seconds", frontier.solver_seconds},
          {"points", std::move(points)}};
}

std::string frontier_svg(const PlanningProblem& problem, const Frontier& frontier,
                         std::optional<std::size_t> recommended, const std::string& title) {
  if (frontier.points.empty()) return {};
  const auto& fastest = frontier.points.front();
  const auto& cheapest = frontier.points.back();
  const Axis x(fastest.seconds, cheapest.seconds, kLeft, kRight);
  const Axis y(cheapest.usd, fastest.usd, kBottom, kTop);
  auto svg = fmt::format(
      "<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}'>\n"
      "<style>text{{font:13px sans-serif;fill:#333}}.grid{{stroke:#e4e4e4}}.line{{fill:none;"
      "stroke:#9bb7d4;stroke-width:1.5}}circle{{fill:#2166ac}}.best{{fill:#d6604d}}</style>\n"
      "<rect width='{0}' height='{1}' fill='white'/>\n"
      "<text x='{2}' y='28' style='font-size:16px'>{3}</text>\n",
      kWidth, kHeight, kLeft, escaped(title));
  svg += grid(x, y) + staircase(frontier, x, y);
  for (std::size_t i = 0; i < frontier.points.size(); ++i) {
    const auto& point = frontier.points[i];
    svg += fmt::format(
        "<circle{} cx='{:.1f}' cy='{:.1f}' r='{}'><title>{:.4g} s, ${:.4g}: {}, {} "
        "MB{}</title></circle>\n",
        i == recommended ? " class='best'" : "", x.pixel(point.seconds), y.pixel(point.usd),
        i == recommended ? 6 : 3.5, point.seconds, point.usd, shape_text(problem, point.solution),
        memory_text(problem, point.solution), i == recommended ? " (recommended)" : "");
  }
  svg += fmt::format("<text x='{}' y='{}' text-anchor='middle'>seconds of an iteration</text>\n",
                     (kLeft + kRight) / 2, kHeight - 16);
  svg += fmt::format(
      "<text transform='translate(24 {}) rotate(-90)' text-anchor='middle'>USD of an "
      "iteration</text>\n</svg>\n",
      (kTop + kBottom) / 2);
  return svg;
}

}  // namespace funcpipe

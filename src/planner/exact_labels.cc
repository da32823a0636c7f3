#include "planner/exact_labels.h"

#include <algorithm>

namespace funcpipe::exact {
namespace {

// Exchange is strict by this much, so that it never decides between plans of equal value.
constexpr double kStrict = 1e-9;

}  // namespace

Label prepend(const DegreeModel& model, const Label& label, int option, int h, int e) {
  const auto& stage = model.options()[static_cast<std::size_t>(option)];
  const auto first = static_cast<std::size_t>(h), last = static_cast<std::size_t>(e);
  const double forward = stage.forward[last] - stage.forward[first];
  const double backward = stage.backward[last] - stage.backward[first];
  const double tail = stage.tail[last] - stage.tail[first] + stage.tail_constant;
  Label result = label;
  result.x = std::max(label.x, model.repeats() * std::max(forward, stage.up[last]));
  result.y = std::max(label.y, model.repeats() * std::max(backward, stage.down[last]));
  result.q = label.q + (forward + backward) + stage.link[last];
  result.p = std::max(label.p + forward + stage.up[last], result.q + result.y + tail);
  result.units = label.units + stage.units;
  result.usd = label.usd + stage.usd;
  ++result.stages;
  result.end = e;
  result.option = option;
  if (h == 0) return result;
  result.x = std::max(result.x, model.repeats() * stage.down[first]);
  result.y = std::max(result.y, model.repeats() * stage.up[first]);
  result.q += stage.link[first];
  result.p += stage.down[first];
  result.usd += model.cut_usd();
  return result;
}

DominanceFilter::DominanceFilter(const DegreeModel& model, bool counts_stages)
    : model_(model), counts_stages_(counts_stages) {}

DominanceFilter::Kept DominanceFilter::keys_of(const Label& label) {
  return {label.p,
          label.p + label.x,
          label.q,
          label.q + label.x,
          label.q + label.y,
          label.q + label.x + label.y,
          static_cast<double>(label.units),
          label.usd,
          label.stages};
}

bool DominanceFilter::is_dominated(const Kept& b, const Slack& slack) const {
  for (const auto& a : kept_) {
    const double units = b.units - a.units;
    const double by = units * (units >= 0 ? slack.slower : slack.faster);
    if (a.qxy <= b.qxy + by && a.px <= b.px + by && a.q <= b.q + by && a.p <= b.p + by &&
        a.qx <= b.qx + by && a.qy <= b.qy + by && a.usd <= b.usd &&
        (!counts_stages_ || a.stages <= b.stages))
      return true;
  }
  return false;
}

DominanceFilter::Slack DominanceFilter::slack_of(const Candidate& candidate,
                                                 const Target::Exchange& exchange) {
  Slack slack;
  const double per_unit = exchange.weight_per_unit;
  const double least_seconds = candidate.least_seconds;
  const double least_weight =
      static_cast<double>(candidate.least_units) * per_unit + exchange.weight;
  if (exchange.may_be_slower && exchange.value > 0)
    slack.slower = least_seconds * least_seconds * per_unit / exchange.value * (1 - kStrict);
  if (exchange.may_cost_more && least_weight > 0)
    slack.faster = exchange.value * per_unit / (least_weight * least_weight) * (1 + kStrict);
  return slack;
}

// In the order of the sum of all terms nearly every label comes after those that dominate it.
void DominanceFilter::apply(const Target& target, std::vector<Candidate>& candidates) {
  const auto exchange = target.exchange(model_.price());
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    const double left = a.label.p + a.label.q + a.label.x + a.label.y;
    const double right = b.label.p + b.label.q + b.label.x + b.label.y;
    return left != right ? left < right : a.label.units < b.label.units;
  });
  kept_.clear();
  std::size_t count = 0;
  for (const auto& candidate : candidates) {
    const auto keys = keys_of(candidate.label);
    if (is_dominated(keys, exchange ? slack_of(candidate, *exchange) : Slack{})) continue;
    kept_.push_back(keys);
    candidates[count++] = candidate;
  }
  candidates.resize(count);
}

}  // namespace funcpipe::exact

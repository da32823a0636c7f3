// The names of enumerators in job files, shared by reading (job.cc) and writing (job_json.cc).
#pragma once

#include <array>
#include <string_view>
#include <utility>

#include "core/job.h"

namespace funcpipe {

template <typename E, std::size_t N>
using Names = std::array<std::pair<E, std::string_view>, N>;

inline constexpr Names<LossKind, 2> kLosses = {
    {{LossKind::kCrossEntropy, "cross_entropy"}, {LossKind::kMeanSquaredError, "mse"}}};
inline constexpr Names<OptimizerSpec::Kind, 3> kOptimizers = {
    {{OptimizerSpec::Kind::kSgd, "sgd"},
     {OptimizerSpec::Kind::kAdam, "adam"},
     {OptimizerSpec::Kind::kAdamW, "adamw"}}};
inline constexpr Names<LearningRateSpec::Kind, 3> kSchedules = {
    {{LearningRateSpec::Kind::kConstant, "constant"},
     {LearningRateSpec::Kind::kStep, "step"},
     {LearningRateSpec::Kind::kCosine, "cosine"}}};

template <typename E, std::size_t N>
std::string_view name_of(E value, const Names<E, N>& names) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return {};
}

}  // namespace funcpipe

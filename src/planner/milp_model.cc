#include "planner/milp_model.h"

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>

#include "base/error.h"

namespace funcpipe {

int MilpModel::add_continuous(double lower, double upper, double cost) {
  columns_.push_back({lower, upper, cost, false});
  return column_count() - 1;
}

int MilpModel::add_binary(double cost) {
  columns_.push_back({0, 1, cost, true});
  return column_count() - 1;
}

void MilpModel::add_row(double lower, std::vector<Term> terms, double upper) {
  rows_.push_back({lower, upper, std::move(terms)});
}

class CbcRun {
 public:
  CbcRun(const MilpModel& model, const CbcOptions& options)
      : model_(model), cutoff_(options.cutoff), cbc_(Cbc_newModel(), &Cbc_deleteModel) {
    Cbc_setLogLevel(cbc_.get(), 0);
    load();
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, std::string>>{
             {"log", "0"},
             {"slog", "0"},
             {"timeMode", "elapsed"},
             {"ratioGap", "0"},
             {"allowableGap", "0"},
             {"increment", "1e-9"},
             {"primalTolerance", fmt::format("{}", options.feasibility)},
             {"integerTolerance", fmt::format("{}", options.feasibility)}})
      Cbc_setParameter(cbc_.get(), name, value.c_str());
    if (std::isfinite(options.cutoff)) Cbc_setCutoff(cbc_.get(), options.cutoff);
    if (options.time_limit < std::chrono::hours(24 * 365))
      Cbc_setMaximumSeconds(cbc_.get(), to_seconds(options.time_limit));
  }

  MilpResult solve() {
    Cbc_solve(cbc_.get());
    MilpResult result;
    result.nodes = Cbc_getNodeCount(cbc_.get());
    if (const double* values = Cbc_bestSolution(cbc_.get()))
      result.values.assign(values, values + model_.column_count());
    if (Cbc_isProvenInfeasible(cbc_.get())) {
      result.status = MilpResult::Status::kInfeasible;
      result.bound = std::numeric_limits<double>::infinity();
    } else if (Cbc_isProvenOptimal(cbc_.get()) && !result.values.empty()) {
      result.status = MilpResult::Status::kOptimal;
      result.bound = Cbc_getObjValue(cbc_.get());
    } else {
      result.bound = open_bound(result);
    }
    return result;
  }

 private:
  // Of a search that was stopped. Before the first node is solved, and when all that is left lies
  // above the cutoff, what CBC calls its bound is none.
  double open_bound(const MilpResult& result) const {
    const double bound = Cbc_getBestPossibleObjValue(cbc_.get());
    const double best = result.values.empty() ? cutoff_ : Cbc_getObjValue(cbc_.get());
    const bool known = result.nodes > 0 && bound < best && std::fabs(bound) < kCbcInfinity;
    return known ? bound : -std::numeric_limits<double>::infinity();
  }

  // Column by column, as CBC takes it.
  void load() {
    std::vector<std::vector<std::pair<int, double>>> entries(model_.columns_.size());
    std::vector<double> row_lower, row_upper;
    for (const auto& row : model_.rows_) {
      const auto index = static_cast<int>(row_lower.size());
      for (const auto& term : row.terms)
        entries[static_cast<std::size_t>(term.column)].emplace_back(index, term.factor);
      row_lower.push_back(row.lower);
      row_upper.push_back(row.upper);
    }
    std::vector<int> starts{0}, indices;
    std::vector<double> factors, lower, upper, cost;
    for (std::size_t c = 0; c < entries.size(); ++c) {
      for (const auto& [row, factor] : entries[c]) {
        indices.push_back(row);
        factors.push_back(factor);
      }
      starts.push_back(static_cast<int>(indices.size()));
      lower.push_back(model_.columns_[c].lower);
      upper.push_back(model_.columns_[c].upper);
      cost.push_back(model_.columns_[c].cost);
    }
    Cbc_loadProblem(cbc_.get(), model_.column_count(), model_.row_count(), starts.data(),
                    indices.data(), factors.data(), lower.data(), upper.data(), cost.data(),
                    row_lower.data(), row_upper.data());
    for (int c = 0; c < model_.column_count(); ++c)
      if (model_.columns_[static_cast<std::size_t>(c)].integer) Cbc_setInteger(cbc_.get(), c);
  }

  static constexpr double kCbcInfinity = 1e49;

  const MilpModel& model_;
  const double cutoff_;
  std::unique_ptr<Cbc_Model, decltype(&Cbc_deleteModel)> cbc_;
};

MilpResult solve(const MilpModel& model, const CbcOptions& options) {
  return CbcRun(model, options).solve();
}

}  // namespace funcpipe

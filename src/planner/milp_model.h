// A mixed-integer linear programme, and its solution by CBC (COIN-OR branch and cut). Nothing else
// of the project knows CBC.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "base/units.h"

namespace funcpipe {

// Minimise the sum of cost * column under lower <= row <= upper. Infinite bounds are none.
class MilpModel {
 public:
  struct Term {
    int column = 0;
    double factor = 0;
  };

  int add_continuous(double lower, double upper, double cost);
  int add_binary(double cost);
  void add_row(double lower, std::vector<Term> terms, double upper);

  int column_count() const { return static_cast<int>(columns_.size()); }
  int row_count() const { return static_cast<int>(rows_.size()); }

 private:
  friend class CbcRun;
  struct Column {
    double lower, upper, cost;
    bool integer;
  };
  struct Row {
    double lower, upper;
    std::vector<Term> terms;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

struct CbcOptions {
  Duration time_limit = Duration::max();
  // Solutions that cost more are of no interest.
  double cutoff = std::numeric_limits<double>::infinity();
  double feasibility = 1e-9;  // absolute, of rows and of integers
};

struct MilpResult {
  enum class Status {
    kOptimal,     // to the tolerances above, and 1e-9 in the objective
    kInfeasible,  // there is none of cost below the cutoff
    kStopped,     // the time ran out; `values` is empty when nothing was found
  };
  Status status = Status::kStopped;
  std::vector<double> values;  // of the columns
  double bound = 0;            // no solution costs less
  std::int64_t nodes = 0;
};

// Single-threaded and silent. CBC keeps global state: one call at a time in a process.
MilpResult solve(const MilpModel& model, const CbcOptions& options);

}  // namespace funcpipe

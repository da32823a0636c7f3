// One rank's tasks of an all-reduce among n ranks that talk through storage. The values are cut
// into n splits; rank j reduces split j, always summing the parts in rank order, so that every
// algorithm gives the same bits.
//
//   three-phase (LambdaML): (3 - 2/n) s/w + 4 lat      m: a reduced split
//     up    [splits 1..n-1][              ][m][      ]
//     down  [              ][parts 1..n-1 ]   [m ... m]
//
//   pipelined (FuncPipe, Liu et al. 2023): 2 s/w + (2 + n) lat
//     up    [split +1][split +2] ...          [m]
//     down  [part  -1][part  -2] ...             [m -1][m -2] ...
#pragma once

#include "schedule/task.h"

namespace funcpipe {

// Empty for one rank. Dependencies are indices into the list itself.
TaskList all_reduce_tasks(AllReduceAlgorithm algorithm, int rank, int ranks);

// Where split `index` of `values` values lies: sizes differ by at most one.
struct SplitRange {
  std::size_t first = 0;
  std::size_t count = 0;
};
SplitRange split_range(std::size_t values, int index, int ranks);

}  // namespace funcpipe

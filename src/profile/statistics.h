// Of repeated measurements.
#pragma once

#include <vector>

namespace funcpipe {

struct Quartiles {
  double median = 0;
  double spread = 0;  // distance of the upper from the lower quartile
};

// Linear between the values where none is in place. All 0 for no values.
Quartiles quartiles_of(std::vector<double> values);

}  // namespace funcpipe

// The convolutional ones of the paper's models (paper_models.h).
#pragma once

#include <vector>

#include "planner/paper_models.h"

namespace funcpipe {

std::vector<ChainLayer> resnet101();
std::vector<ChainLayer> amoebanet_d(int normal_cells);  // a multiple of 3

}  // namespace funcpipe

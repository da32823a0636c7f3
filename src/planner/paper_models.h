// The models of Liu et al. 2023 as chains of layers, in numbers that follow from their shapes:
//
//   resnet101      304 elements: He et al. 2016 as torchvision builds it, every convolution,
//                  normalisation and activation by itself; inside a block its input travels along
//   amoebanet-d18  24 cells of AmoebaNet-D with 256 filters (Real et al. 2019; the genotype that
//   amoebanet-d36  42  GPipe and torchgpipe use); cells pass (x, skip)
//   bert-large     296 elements: embeddings, 24 blocks of 12, pooler (Devlin et al. 2019), for
//                  sequences of 64 tokens and a vocabulary of 30,522
//
// Images have 3 x 224 x 224 values and 1000 classes. Values are 32-bit floats.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace funcpipe {

// Counts for one sample, but for parameters and buffers.
struct ChainLayer {
  std::string name = "";
  std::string kind = "";
  double parameters = 0;
  double buffer_bytes = 0;  // running statistics
  // What autograd keeps from forward to backward, in values. A tensor that two layers keep (a
  // convolution's input is the activation's output) counts once, where it is made.
  double kept = 0;
  double output = 0;  // values that cross a cut behind this layer, skip connections included
  double flops = 0;   // of the forward pass; a multiply-add is two
  double moved = 0;   // values read and written by the forward pass, parameters not counted

  // Adds all but names and output: several operations as one layer.
  ChainLayer& operator+=(const ChainLayer& other);
};

std::vector<std::string> paper_model_names();
// Throws Error(kInvalidArgument) naming the models there are.
std::vector<ChainLayer> paper_model(std::string_view name);

}  // namespace funcpipe

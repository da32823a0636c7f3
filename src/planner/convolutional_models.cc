#include "planner/convolutional_models.h"

#include <array>
#include <span>
#include <utility>

#include "base/error.h"

namespace funcpipe {
namespace {

constexpr int kClasses = 1000;

// A square image of `channels` planes.
struct Image {
  int channels = 0;
  int side = 0;
  double values() const { return 1.0 * channels * side * side; }
  Image shrunk(int stride) const { return {channels, side / stride}; }
};

// Keeps its output, for the normalisation that follows. No bias.
ChainLayer convolution(Image in, Image out, int kernel_area) {
  const double weights = 1.0 * in.channels * out.channels * kernel_area;
  return {.kind = "conv",
          .parameters = weights,
          .kept = out.values(),
          .output = out.values(),
          .flops = 2 * weights * out.side * out.side,
          .moved = in.values() + out.values()};
}

// Batch normalisation: mean, variance and scaling read the input twice.
ChainLayer normalisation(Image image) {
  return {.kind = "norm",
          .parameters = 2.0 * image.channels,
          .buffer_bytes = 8.0 * image.channels + 8,
          .output = image.values(),
          .flops = 8 * image.values(),
          .moved = 3 * image.values()};
}

ChainLayer elementwise(std::string kind, Image image, int operands) {
  return {.kind = std::move(kind),
          .output = image.values(),
          .flops = image.values(),
          .moved = (operands + 1) * image.values()};
}

ChainLayer pooling(Image in, Image out, int kernel_area) {
  return {.kind = "pool",
          .output = out.values(),
          .flops = out.values() * kernel_area,
          .moved = in.values() + out.values()};
}

ChainLayer classifier(int channels) {
  return {.kind = "linear",
          .parameters = 1.0 * channels * kClasses + kClasses,
          .output = kClasses,
          .flops = 2.0 * channels * kClasses,
          .moved = 1.0 * channels + kClasses};
}

class ResNet101 {
 public:
  std::vector<ChainLayer> build() {
    stem();
    constexpr std::array<std::pair<int, int>, 4> kGroups{{{3, 64}, {4, 128}, {23, 256}, {3, 512}}};
    for (std::size_t group = 0; group < kGroups.size(); ++group) {
      for (int block = 0; block < kGroups[group].first; ++block) {
        prefix_ = fmt::format("layer{}.{}.", group + 1, block);
        bottleneck(kGroups[group].second, group > 0 && block == 0 ? 2 : 1, block == 0);
      }
    }
    head();
    return std::move(layers_);
  }

 private:
  void add(const char* name, ChainLayer layer, double travels_along = 0) {
    layer.name = prefix_ + name;
    layer.output += travels_along;
    layers_.push_back(std::move(layer));
  }

  // Convolution, normalisation and an activation in place, which keeps the tensor between.
  void conv_norm_relu(std::array<const char*, 3> names, Image out, int kernel_area, double along) {
    add(names[0], convolution(state_, out, kernel_area), along);
    auto norm = normalisation(out);
    norm.kept = out.values();
    add(names[1], norm, along);
    add(names[2], elementwise("activation", out, 1), along);
    state_ = out;
  }

  void stem() {
    conv_norm_relu({"conv1", "bn1", "relu"}, {64, 112}, 49, 0);
    layers_.front().kept += Image{3, 224}.values();
    const Image out{64, 56};
    auto pool = pooling(state_, out, 9);
    pool.kept = 3 * out.values();  // its output and 64-bit indices
    add("maxpool", pool);
    state_ = out;
  }

  void bottleneck(int width, int stride, bool first) {
    const Image in = state_, out{4 * width, state_.side / stride};
    conv_norm_relu({"conv1", "bn1", "relu1"}, {width, in.side}, 1, in.values());
    conv_norm_relu({"conv2", "bn2", "relu2"}, {width, out.side}, 9, in.values());
    add("conv3", convolution(state_, out, 1), in.values());
    auto norm = normalisation(out);
    norm.kept = out.values();  // the sum and its activation take this tensor's place
    add("bn3", norm, in.values());
    auto sum = elementwise("residual", out, 2);
    sum.moved += 2 * out.values();  // the activation
    if (first) sum += convolution(in, out, 1) += normalisation(out);
    add("add", sum);
    state_ = out;
  }

  void head() {
    prefix_.clear();
    const Image pooled{state_.channels, 1};
    add("avgpool", pooling(state_, pooled, state_.side * state_.side));
    add("flatten", {.kind = "view", .kept = pooled.values(), .output = pooled.values()});
    add("fc", classifier(pooled.channels));
  }

  std::string prefix_;
  Image state_{3, 224};
  std::vector<ChainLayer> layers_;
};

enum class CellOp { kNone, kConv1x1, kConv3x3, kConv1x7And7x1, kAveragePool, kMaxPool };

struct CellInput {
  int state = 0;
  CellOp op = CellOp::kNone;
};

struct CellKind {
  std::array<CellInput, 10> inputs;  // states 2..6 are the sums of two each
  int concatenated = 0;              // states that make the output
  int stride = 1;                    // of operations on states 0 and 1
};

constexpr CellKind kNormalCell{{{{1, CellOp::kConv1x1},
                                 {1, CellOp::kAveragePool},
                                 {1, CellOp::kNone},
                                 {0, CellOp::kConv1x7And7x1},
                                 {0, CellOp::kConv1x1},
                                 {0, CellOp::kConv1x7And7x1},
                                 {2, CellOp::kAveragePool},
                                 {2, CellOp::kNone},
                                 {1, CellOp::kAveragePool},
                                 {5, CellOp::kConv1x1}}},
                               4,
                               1};
constexpr CellKind kReductionCell{{{{0, CellOp::kMaxPool},
                                    {0, CellOp::kAveragePool},
                                    {2, CellOp::kNone},
                                    {1, CellOp::kConv3x3},
                                    {2, CellOp::kConv1x7And7x1},
                                    {2, CellOp::kAveragePool},
                                    {3, CellOp::kNone},
                                    {1, CellOp::kMaxPool},
                                    {2, CellOp::kAveragePool},
                                    {3, CellOp::kConv1x1}}},
                                  3,
                                  2};

// An activation that makes a new tensor (kept), a convolution and its normalisation.
ChainLayer relu_conv_norm(Image in, Image out, int kernel_area) {
  auto result = elementwise("cell", in, 1);
  result.kept = in.values();
  result += convolution(in, out, kernel_area);
  result += normalisation(out);
  return result;
}

// Through a quarter of the channels.
ChainLayer bottleneck_conv(Image in, Image out, std::span<const int> kernel_areas) {
  const Image narrow{in.channels / 4, out.side};
  auto result = relu_conv_norm(in, {narrow.channels, in.side}, 1);
  for (const int area : kernel_areas) result += relu_conv_norm(narrow, narrow, area);
  return result += relu_conv_norm(narrow, out, 1);
}

// But for what a pool keeps.
ChainLayer cell_operation(CellOp op, Image in, Image out) {
  constexpr std::array kSquare{9};
  constexpr std::array kSeven{7, 7};
  switch (op) {
    case CellOp::kNone:
      return {};
    case CellOp::kConv1x1:
      return relu_conv_norm(in, out, 1);
    case CellOp::kConv3x3:
      return bottleneck_conv(in, out, kSquare);
    case CellOp::kConv1x7And7x1:
      return bottleneck_conv(in, out, kSeven);
    case CellOp::kAveragePool:
      return pooling(in, out, 9);
    case CellOp::kMaxPool:
      break;
  }
  auto pool = pooling(in, out, 4);
  pool.kept = 2 * out.values();  // 64-bit indices
  return pool;
}

class AmoebaNetD {
 public:
  std::vector<ChainLayer> build(int normal_cells) {
    stem();
    add_cell("stem2", kReductionCell);
    add_cell("stem3", kReductionCell);
    add_normal_cells("cell1", normal_cells / 3);
    add_cell("cell2_reduction", kReductionCell);
    add_normal_cells("cell3", normal_cells / 3);
    add_cell("cell4_reduction", kReductionCell);
    add_normal_cells("cell5", normal_cells / 3);
    auto last = pooling(x_, {x_.channels, 1}, x_.side * x_.side);
    last.kept = x_.values() + x_.channels;
    last += classifier(x_.channels);
    last.output = kClasses;
    add("classify", "linear", last);
    return std::move(layers_);
  }

 private:
  void add(std::string name, std::string kind, ChainLayer layer) {
    layer.name = std::move(name);
    layer.kind = std::move(kind);
    layers_.push_back(std::move(layer));
  }

  void stem() {
    x_ = skip_ = {channels_, 112};
    auto stem = relu_conv_norm({3, 224}, x_, 9);
    stem.output = x_.values();
    add("stem1", "conv", stem);
  }

  void add_normal_cells(const std::string& name, int count) {
    for (int i = 1; i <= count; ++i) add_cell(fmt::format("{}_normal{}", name, i), kNormalCell);
  }

  // Brings the inputs x and skip to the cell's channels and to the side of x.
  ChainLayer reduce_inputs(Image state) const {
    auto result = relu_conv_norm(x_, state, 1);
    if (skip_.side != x_.side || skip_.channels != channels_) {
      // From twice the side: two convolutions of stride 2, each to half of the channels.
      result += relu_conv_norm(skip_, state, 1);
      if (skip_.side != x_.side) result.kept += skip_.values();  // its copy, shifted by one
    }
    return result;
  }

  void add_cell(std::string name, const CellKind& kind) {
    channels_ *= kind.stride;
    const Image reduced{channels_, x_.side}, out = reduced.shrunk(kind.stride);
    auto cell = reduce_inputs(reduced);
    std::array<bool, 7> pooled{};
    for (const auto& [state, op] : kind.inputs) {
      const Image in = state < 2 ? reduced : out;
      cell += cell_operation(op, in, out);
      const bool pools = op == CellOp::kAveragePool || op == CellOp::kMaxPool;
      if (pools && !std::exchange(pooled[static_cast<std::size_t>(state)], true))
        cell.kept += in.values();
    }
    for (int sum = 0; sum < 5; ++sum) cell += elementwise("", out, 2);
    skip_ = x_;
    x_ = {channels_ * kind.concatenated, out.side};
    cell.moved += 2 * x_.values();  // the concatenation
    cell.output = x_.values() + skip_.values();
    add(std::move(name), "cell", cell);
  }

  int channels_ = 64;  // a quarter of 256 filters
  Image x_, skip_;
  std::vector<ChainLayer> layers_;
};

}  // namespace

std::vector<ChainLayer> resnet101() { return ResNet101().build(); }

std::vector<ChainLayer> amoebanet_d(int normal_cells) { return AmoebaNetD().build(normal_cells); }

}  // namespace funcpipe

#include "planner/paper_models.h"

#include <utility>

#include "base/error.h"
#include "planner/convolutional_models.h"

namespace funcpipe {
namespace {

class BertLarge {
 public:
  std::vector<ChainLayer> build() {
    embeddings();
    for (int block = 0; block < 24; ++block) {
      prefix_ = fmt::format("block{}.", block + 1);
      attention();
      feed_forward();
    }
    pooler();
    return std::move(layers_);
  }

 private:
  static constexpr double kTokens = 64, kHidden = 1024, kInner = 4096, kHeads = 16;
  static constexpr double kVocabulary = 30522, kPositions = 512, kSegments = 2;
  static constexpr double kState = kTokens * kHidden, kWide = kTokens * kInner;
  static constexpr double kScores = kHeads * kTokens * kTokens;
  static constexpr double kIds = 2 * kTokens;  // 64-bit
  static constexpr double kMask = 0.25;        // of dropout, in bytes

  void add(ChainLayer layer) {
    layer.name = prefix_ + layer.name;
    layers_.push_back(std::move(layer));
  }

  static ChainLayer lookup(std::string name, double rows, double kept, double output) {
    return {.name = std::move(name),
            .kind = "embedding",
            .parameters = rows * kHidden,
            .kept = kept,
            .output = output,
            .moved = 3 * kState};
  }

  // `others`: values that travel along.
  static ChainLayer dense(std::string name, double rows, double in, double out, double others) {
    return {.name = std::move(name),
            .kind = "linear",
            .parameters = in * out + out,
            .kept = rows * out,
            .output = rows * out + others,
            .flops = 2 * rows * in * out,
            .moved = rows * (in + out)};
  }

  // Dropout, the residual sum (kept by the normalisation) and the normalised output.
  static ChainLayer add_and_norm(std::string name) {
    return {.name = std::move(name),
            .kind = "norm",
            .parameters = 2 * kHidden,
            .kept = (2 + kMask) * kState,
            .output = kState,
            .flops = 10 * kState,
            .moved = 8 * kState};
  }

  void embeddings() {
    prefix_ = "embeddings.";
    add(lookup("words", kVocabulary, kIds, kState + kIds));
    add(lookup("positions", kPositions, 0, kState + kIds));
    add(lookup("segments", kSegments, kIds + kState, kState));
    add({.name = "norm",
         .kind = "norm",
         .parameters = 2 * kHidden,
         .output = kState,
         .flops = 8 * kState,
         .moved = 3 * kState});
    add({.name = "dropout",
         .kind = "dropout",
         .kept = (1 + kMask) * kState,
         .output = kState,
         .flops = kState,
         .moved = 2 * kState});
  }

  void attention() {
    add(dense("query", kTokens, kHidden, kHidden, kState));
    add(dense("key", kTokens, kHidden, kHidden, 2 * kState));
    add(dense("value", kTokens, kHidden, kHidden, 3 * kState));
    add({.name = "scores",
         .kind = "matmul",
         .output = kScores + 2 * kState,
         .flops = 2 * kTokens * kState,
         .moved = 2 * kState + 3 * kScores});
    add({.name = "softmax",
         .kind = "softmax",
         .kept = (2 + kMask) * kScores,
         .output = kScores + 2 * kState,
         .flops = 6 * kScores,
         .moved = 5 * kScores});
    add({.name = "context",
         .kind = "matmul",
         .kept = kState,
         .output = 2 * kState,
         .flops = 2 * kTokens * kState,
         .moved = 3 * kState + kScores});
    auto output = dense("projection", kTokens, kHidden, kHidden, kState);
    output.kept = 0;
    add(output);
    add(add_and_norm("norm1"));
  }

  void feed_forward() {
    add(dense("expand", kTokens, kHidden, kInner, kState));
    add({.name = "gelu",
         .kind = "activation",
         .kept = kWide,
         .output = kWide + kState,
         .flops = 10 * kWide,
         .moved = 2 * kWide});
    auto output = dense("contract", kTokens, kInner, kHidden, kState);
    output.kept = 0;
    add(output);
    add(add_and_norm("norm2"));
  }

  void pooler() {
    prefix_ = "pooler.";
    add({.name = "first_token",
         .kind = "select",
         .kept = kHidden,
         .output = kHidden,
         .moved = 2 * kHidden});
    auto output = dense("dense", 1, kHidden, kHidden, 0);
    output.kept = 0;
    add(output);
    add({.name = "tanh",
         .kind = "activation",
         .kept = kHidden,
         .output = kHidden,
         .flops = 10 * kHidden,
         .moved = 2 * kHidden});
  }

  std::string prefix_;
  std::vector<ChainLayer> layers_;
};

}  // namespace

ChainLayer& ChainLayer::operator+=(const ChainLayer& other) {
  parameters += other.parameters;
  buffer_bytes += other.buffer_bytes;
  kept += other.kept;
  flops += other.flops;
  moved += other.moved;
  return *this;
}

std::vector<std::string> paper_model_names() {
  return {"resnet101", "amoebanet-d18", "amoebanet-d36", "bert-large"};
}

std::vector<ChainLayer> paper_model(std::string_view name) {
  if (name == "resnet101") return resnet101();
  if (name == "amoebanet-d18") return amoebanet_d(18);
  if (name == "amoebanet-d36") return amoebanet_d(36);
  if (name == "bert-large") return BertLarge().build();
  fail(ErrorCode::kInvalidArgument,
       "'{}' is not a model of the paper; those are resnet101, amoebanet-d18, amoebanet-d36 and "
       "bert-large",
       name);
}

}  // namespace funcpipe

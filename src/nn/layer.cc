#include "nn/layer.h"

#include <algorithm>
#include <cstring>
#include <map>

#include <ATen/ATen.h>
#include <caffe2/serialize/read_adapter_interface.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/alias_analysis.h>
#include <torch/csrc/jit/passes/constant_propagation.h>
#include <torch/csrc/jit/passes/inliner.h>
#include <torch/csrc/jit/serialization/import.h>

#include "base/error.h"
#include "nn/torch_bridge.h"

namespace funcpipe::nn {
namespace {

// Lets libtorch read an archive where it is in memory.
class MemoryReader final : public caffe2::serialize::ReadAdapterInterface {
 public:
  explicit MemoryReader(ByteView bytes) : bytes_(bytes) {}
  std::size_t size() const override { return bytes_.size(); }
  std::size_t read(std::uint64_t position, void* buffer, std::size_t count,
                   const char*) const override {
    const auto part = bytes_.subspan(std::min<std::size_t>(position, bytes_.size()));
    const auto length = std::min(count, part.size());
    std::memcpy(buffer, part.data(), length);
    return length;
  }

 private:
  ByteView bytes_;
};

std::unique_ptr<torch::jit::Module> load_module(ByteView file, const std::string& layer) {
  try {
    return std::make_unique<torch::jit::Module>(
        torch::jit::load(std::make_shared<MemoryReader>(file), at::kCPU));
  } catch (const std::exception&) {
    fail(ErrorCode::kDataLoss,
         "{}: its file is not a TorchScript archive that this libtorch can read, or is damaged",
         layer);
  }
}

c10::IValue to_value(const LayerValue& value) {
  if (!value.is_tuple) return value.tensors.at(0);
  std::vector<c10::IValue> members(value.tensors.begin(), value.tensors.end());
  return c10::ivalue::Tuple::create(std::move(members));
}

LayerValue from_value(const c10::IValue& value) {
  if (value.isTensor()) return {{value.toTensor()}, false};
  LayerValue result({}, true);
  const bool is_tuple = value.isTuple();
  for (const auto& member :
       is_tuple ? value.toTupleRef().elements().vec() : std::vector<c10::IValue>{}) {
    if (!member.isTensor()) {
      fail(ErrorCode::kInvalidArgument, "returns a tuple with a {} in it; members must be tensors",
           member.tagKind());
    }
    result.tensors.push_back(member.toTensor());
  }
  if (!is_tuple) {
    fail(ErrorCode::kInvalidArgument,
         "returns a {}; a layer returns a tensor or a tuple of tensors", value.tagKind());
  }
  return result;
}

template <typename List>
std::unique_ptr<NamedTorchTensors> named(const List& list, const std::string& prefix) {
  auto result = std::make_unique<NamedTorchTensors>();
  for (const auto& item : list) result->emplace_back(prefix + "." + item.name, item.value);
  return result;
}

void check_same(const NamedTorchTensors& found, const std::vector<TensorFacts>& expected,
                const std::string& prefix, const std::string& layer) {
  for (const auto& facts : expected) {
    const auto name = prefix + "." + facts.name;
    const auto at = std::find_if(found.begin(), found.end(),
                                 [&](const auto& tensor) { return tensor.first == name; });
    if (at == found.end() || at->second.sizes() != facts.shape) {
      fail(ErrorCode::kDataLoss, "{}: its file {} tensor '{}' of shape {} that the manifest lists",
           layer, at == found.end() ? "lacks the" : "holds another", facts.name,
           to_string(facts.shape));
    }
  }
  if (found.size() != expected.size()) {
    fail(ErrorCode::kDataLoss,
         "{}: its file holds {} tensors of a kind of which the manifest lists {}", layer,
         found.size(), expected.size());
  }
}

// Whether an operation of the block writes into a tensor that is one of `inputs`, or in a tuple of
// them.
bool writes_any(const torch::jit::Block* block, const torch::jit::AliasDb& aliases,
                at::ArrayRef<torch::jit::Value*> inputs) {
  return std::any_of(block->nodes().begin(), block->nodes().end(), [&](auto* node) {
    const auto* schema = node->maybeSchema();
    for (std::size_t i = 0; schema && i < schema->arguments().size(); ++i) {
      const auto* facts = schema->arguments()[i].alias_info();
      if (facts && facts->isWrite() && aliases.mayContainAlias(node->input(i), inputs)) return true;
    }
    return std::any_of(node->blocks().begin(), node->blocks().end(),
                       [&](const auto* inner) { return writes_any(inner, aliases, inputs); });
  });
}

}  // namespace

LayerValue::LayerValue() = default;
LayerValue::LayerValue(std::vector<at::Tensor> members, bool tuple)
    : tensors(std::move(members)), is_tuple(tuple) {}
LayerValue::LayerValue(const LayerValue&) = default;
LayerValue::LayerValue(LayerValue&&) noexcept = default;
LayerValue& LayerValue::operator=(LayerValue&&) noexcept = default;
LayerValue::~LayerValue() = default;

Layer::Layer(LayerManifest manifest, int index, ByteView file)
    : manifest_(std::move(manifest)), index_(index), module_(load_module(file, describe())) {
  parameters_ = named(module_->named_parameters(), manifest_.name);
  buffers_ = named(module_->named_buffers(), manifest_.name);
  check_tensors();
  analyse_aliases();
}

Layer::~Layer() = default;
Layer::Layer(Layer&&) noexcept = default;

std::string Layer::describe() const {
  return fmt::format("layer {} ('{}', {})", index_, manifest_.name, manifest_.kind);
}

const NamedTorchTensors& Layer::parameters() const { return *parameters_; }
const NamedTorchTensors& Layer::buffers() const { return *buffers_; }

void Layer::check_tensors() const {
  check_same(*parameters_, manifest_.parameters, manifest_.name, describe());
  check_same(*buffers_, manifest_.buffers, manifest_.name, describe());
  std::map<const void*, std::string> seen;
  for (const auto* list : {parameters_.get(), buffers_.get()}) {
    for (const auto& [name, tensor] : *list) {
      const bool is_parameter = list == parameters_.get();
      if (tensor.scalar_type() != at::kFloat && (is_parameter || tensor.is_floating_point())) {
        fail(ErrorCode::kInvalidArgument,
             "{}: '{}' is {}; train with float32 parameters and floating-point buffers", describe(),
             name, to_string(to_dtype(tensor.scalar_type())));
      }
      if (tensor.numel() == 0) continue;
      const auto [at, is_new] = seen.emplace(tensor.data_ptr(), name);
      if (!is_new) {
        fail(ErrorCode::kInvalidArgument,
             "{}: '{}' and '{}' share memory; tied tensors are not supported", describe(),
             at->second, name);
      }
    }
  }
}

void Layer::analyse_aliases() {
  auto graph = module_->get_method("forward").graph()->copy();
  torch::jit::Inline(*graph);
  torch::jit::ConstantPropagation(graph);
  const torch::jit::AliasDb aliases(graph);
  const auto inputs = graph->inputs().slice(1);  // the first one is self
  writes_input_ = writes_any(graph->block(), aliases, inputs);
  may_alias_input_ = aliases.mayContainAlias(inputs, graph->outputs());
}

void Layer::set_training(bool training) { module_->train(training); }

LayerValue Layer::forward(const LayerValue& input) {
  try {
    return from_value(module_->forward({to_value(input)}));
  } catch (...) {
    rethrow_as_error(fmt::format("{} on {}", describe(), nn::describe(input.tensors)));
  }
}

}  // namespace funcpipe::nn

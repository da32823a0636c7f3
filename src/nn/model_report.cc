#include "nn/model_report.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "base/units.h"

namespace funcpipe {
namespace {

using Row = std::array<std::string, 6>;

std::string shape_text(const std::vector<TensorFacts>& tensors, bool is_tuple) {
  std::string text;
  for (const auto& tensor : tensors) {
    if (!text.empty()) text += ", ";
    text += to_string(tensor.shape);
    if (tensor.dtype != DType::kFloat32) text += fmt::format(" {}", to_string(tensor.dtype));
  }
  return is_tuple ? "(" + text + ")" : text;
}

// 1234567 -> "1,234,567"
std::string grouped(std::int64_t count) {
  auto digits = std::to_string(count);
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return digits;
}

Row layer_row(const LayerManifest& layer, std::size_t index) {
  return {std::to_string(index),
          layer.name,
          layer.kind + (layer.export_method == "trace" ? " (traced)" : ""),
          grouped(layer.parameter_count()),
          shape_text(layer.outputs, layer.output_is_tuple),
          format_bytes(static_cast<double>(layer.output_bytes()))};
}

std::string format_table(const std::vector<Row>& rows) {
  std::array<std::size_t, 6> widths{};
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    text += fmt::format("{:>{}}  {:<{}}  {:<{}}  {:>{}}  {:<{}}  {:>{}}\n", row[0], widths[0],
                        row[1], widths[1], row[2], widths[2], row[3], widths[3], row[4], widths[4],
                        row[5], widths[5]);
  }
  return text;
}

}  // namespace

std::string model_report(const ModelManifest& manifest) {
  std::vector<Row> rows = {{"#", "name", "kind", "parameters", "output per sample", "bytes"}};
  std::uint64_t parameter_bytes = 0, buffer_bytes = 0, output_bytes = 0;
  for (std::size_t i = 0; i < manifest.layers.size(); ++i) {
    const auto& layer = manifest.layers[i];
    rows.push_back(layer_row(layer, i));
    parameter_bytes += layer.parameter_bytes();
    buffer_bytes += layer.buffer_bytes();
    output_bytes += layer.output_bytes();
  }
  return fmt::format(
      "{}: {} layers, input {}\n{}total: {} parameters ({}), {} of buffers, {} of outputs per "
      "sample\n",
      manifest.name, manifest.layers.size(), shape_text(manifest.inputs, manifest.input_is_tuple),
      format_table(rows), grouped(manifest.parameter_count()), format_bytes(parameter_bytes),
      format_bytes(buffer_bytes), format_bytes(output_bytes));
}

}  // namespace funcpipe

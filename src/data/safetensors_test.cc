#include "data/safetensors.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;
using testing::random_array;
using testing::to_buffer;

std::string joined(const SafetensorsFile& file) {
  std::string text;
  for (const auto part : file.parts) text += as_text(part);
  return text;
}

std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

NamedTensors parse(const std::string& file) { return parse_safetensors(to_buffer(file), "f"); }

TEST(Safetensors, RandomTensorsSurviveARoundTrip) {
  Rng rng(1);
  for (int round = 0; round < 100; ++round) {
    std::vector<Array> arrays;
    std::vector<NamedTensor> tensors;
    for (std::uint64_t i = rng.below(8); i > 0; --i) {
      Shape shape;
      for (std::uint64_t d = rng.below(4); d > 0; --d) {
        shape.push_back(static_cast<std::int64_t>(rng.below(6)));
      }
      arrays.push_back(random_array(rng, static_cast<DType>(rng.below(kDTypeCount)), shape));
      tensors.push_back({fmt::format("{}.\"weight\"", i), arrays.back().view});
    }
    const auto file = write_safetensors(tensors, {{"format", "pt"}});
    const auto text = joined(file);
    EXPECT_EQ(text.size(), file.size);
    const auto read = parse(text);
    ASSERT_EQ(read.tensors.size(), tensors.size());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const auto& made = tensors[i].tensor;
      const auto& found = read.tensors[i].tensor;
      EXPECT_EQ(read.tensors[i].name, tensors[i].name);
      EXPECT_EQ(found.dtype, made.dtype);
      EXPECT_EQ(found.shape, made.shape);
      EXPECT_EQ(as_text(found.data), as_text(made.data));
      EXPECT_EQ(text.substr(file.offsets[i], made.data.size()), as_text(made.data));
      EXPECT_EQ(file.offsets[i] % size_of(made.dtype), 0U);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(found.data.data()) % size_of(found.dtype), 0U);
    }
  }
}

TEST(Safetensors, DataBeginOnA64ByteBoundaryAndTheFileIsDeterministic) {
  Rng rng(2);
  const auto a = random_array(rng, DType::kUInt8, {3});
  const auto b = random_array(rng, DType::kFloat32, {2, 2});
  const std::vector<NamedTensor> tensors = {{"a", a.view}, {"b", b.view}};
  const auto file = write_safetensors(tensors);
  EXPECT_EQ(file.header.size() % 64, 0U);
  EXPECT_EQ(file.offsets[1], file.header.size()) << "larger elements first";
  EXPECT_EQ(joined(file), joined(write_safetensors(tensors)));
}

TEST(Safetensors, BadTensorsAreNotWritten) {
  Rng rng(3);
  const auto a = random_array(rng, DType::kUInt8, {3});
  auto wrong = a.view;
  wrong.shape = {4};
  const auto write = [](std::vector<NamedTensor> tensors) { write_safetensors(tensors); };
  expect_error(ErrorCode::kInvalidArgument, {"'a'", "twice"}, [&] {
    write({{"a", a.view}, {"a", a.view}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"reserved"}, [&] {
    write({{"__metadata__", a.view}});
  });
  expect_error(ErrorCode::kInvalidArgument, {"'w'", "[4]", "3 bytes"}, [&] {
    write({{"w", wrong}});
  });
}

TEST(Safetensors, UnalignedDataOfOtherWritersAreCopiedIntoPlace) {
  const std::string header = R"({"x":{"dtype":"F64","shape":[1],"data_offsets":[0,8]}} )";
  ASSERT_NE((8 + header.size()) % 8, 0U);
  const auto read = parse(file_of(header, "12345678"));
  const auto data = read.tensors.at(0).tensor.data;
  EXPECT_EQ(as_text(data), "12345678");
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data.data()) % 8, 0U);
}

TEST(Safetensors, EveryTruncationAndAnyExcessIsDataLoss) {
  Rng rng(4);
  const auto a = random_array(rng, DType::kInt16, {5});
  const auto text = joined(write_safetensors(std::vector<NamedTensor>{{"a", a.view}}));
  for (std::size_t size = 0; size < text.size(); ++size) {
    expect_error(ErrorCode::kDataLoss, {"f: "}, [&] { parse(text.substr(0, size)); });
  }
  expect_error(ErrorCode::kDataLoss, {"too long"}, [&] { parse(text + "x"); });
}

TEST(Safetensors, DamagedHeadersAreDataLoss) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"[]", "not a JSON object"},
      {"{", "not a JSON object"},
      {R"({"a":3})", "'a' has no dtype"},
      {R"({"a":{"dtype":"U8","shape":[4]}})", "no data_offsets"},
      {R"({"a":{"dtype":8,"shape":[4],"data_offsets":[0,4]}})", "dtype is not text"},
      {R"({"a":{"dtype":"U8","shape":4,"data_offsets":[0,4]}})", "shape is not a list"},
      {R"({"a":{"dtype":"U8","shape":[-4],"data_offsets":[0,4]}})", "shape holds -4"},
      {R"({"a":{"dtype":"U8","shape":[4.5],"data_offsets":[0,4]}})", "shape holds 4.5"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4,4]}})", "data_offsets [0,4,4]"},
      {R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[4,0]}})", "data_offsets [4,0]"},
      {R"({"a":{"dtype":"U8","shape":[5],"data_offsets":[0,5]}})", "truncated"},
      {R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,4]}})", "has 4 bytes"},
      {R"({"a":{"dtype":"F64","shape":[9223372036854775807],"data_offsets":[0,4]}})",
       "has 4 bytes"},
      {R"({"a":{"dtype":"U8","shape":[18446744073709551615],"data_offsets":[0,4]}})", "too large"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]}})", "too long"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[1,4]}})", "gap"},
      {R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},
           "b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "overlap"},
      {R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},
           "a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
       "gap"},
  };
  for (const auto& [header, word] : cases) {
    expect_error(ErrorCode::kDataLoss, {"f: ", word}, [&] { parse(file_of(header, "1234")); });
  }
  expect_error(ErrorCode::kInvalidArgument, {"'a'", "F8_E4M3"}, [] {
    parse(file_of(R"({"a":{"dtype":"F8_E4M3","shape":[4],"data_offsets":[0,4]}})", "1234"));
  });
}

TEST(Safetensors, PythonLoadsWhatWeWrite) {
  Rng rng(5);
  const std::vector<float> weights = {1.5F, -2, 0.25F, 8, 0, 1e-3F};
  TensorView weight;
  weight.shape = {2, 3};
  weight.data = std::as_bytes(std::span(weights));
  const auto flags = random_array(rng, DType::kBool, {5});
  const auto empty = random_array(rng, DType::kInt64, {0, 2});
  const TemporaryDirectory folder;
  const auto path = folder.path() / "model.safetensors";
  write_file(path, write_safetensors(
                       std::vector<NamedTensor>{
                           {"0.weight", weight}, {"flags", flags.view}, {"none", empty.view}},
                       {{"format", "pt"}})
                       .parts);
  EXPECT_EQ(testing::run_python(R"(
import sys
from weights import load_safetensors
for name, tensor in load_safetensors(sys.argv[1]).items():
    print(name, tensor.dtype, list(tensor.shape), tensor.flatten().tolist()[:4] if name == "0.weight" else "")
open(sys.argv[1], "r+b").truncate(100)
try:
    load_safetensors(sys.argv[1])
except ValueError as error:
    print("truncated" in str(error))
)",
                                {path.string()}),
            "0.weight torch.float32 [2, 3] [1.5, -2.0, 0.25, 8.0]\n"
            "flags torch.bool [5] \n"
            "none torch.int64 [0, 2] \n"
            "True\n");
}

}  // namespace
}  // namespace funcpipe

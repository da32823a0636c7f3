#include "data/npy.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "data/test_support.h"

namespace funcpipe {
namespace {

using testing::expect_error;
using testing::to_buffer;

std::string npy_file(const std::string& dictionary, const std::string& data, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  for (int i = 0; i < (version == 1 ? 2 : 4); ++i) {
    file += static_cast<char>(dictionary.size() >> 8 * i & 0xff);
  }
  return file + dictionary + data;
}

Array parse(const std::string& file) { return parse_npy(to_buffer(file), "f.npy"); }

TEST(Npy, VersionsOneToThree) {
  for (const char version : {1, 2, 3}) {
    const auto array =
        parse(npy_file("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }   \n",
                       "aabbccddeeff", version));
    EXPECT_EQ(array.view.dtype, DType::kInt16);
    EXPECT_EQ(array.view.shape, (Shape{2, 3}));
    EXPECT_EQ(as_text(array.view.data), "aabbccddeeff");
  }
}

TEST(Npy, KeysInAnyOrderAndShapesOfAnyLength) {
  const auto shape_of = [](const std::string& shape, const std::string& data) {
    return parse(npy_file("{'shape':" + shape + ",'fortran_order':False,'descr':'|u1'}", data))
        .view.shape;
  };
  EXPECT_EQ(shape_of("()", "x"), Shape{});
  EXPECT_EQ(shape_of("(3,)", "xyz"), Shape{3});
  EXPECT_EQ(shape_of("( 1 , 2 )", "xy"), (Shape{1, 2}));
  EXPECT_EQ(shape_of("(0, 7)", ""), (Shape{0, 7}));
}

TEST(Npy, WhatCannotBeReadSaysHowToSaveIt) {
  const auto file = [](const std::string& descr, const std::string& fortran) {
    return npy_file("{'descr': " + descr + ", 'fortran_order': " + fortran + ", 'shape': (1,)}",
                    "x");
  };
  expect_error(ErrorCode::kInvalidArgument, {"f.npy", "Fortran", "ascontiguousarray"},
               [&] { parse(file("'<f4'", "True")); });
  expect_error(ErrorCode::kInvalidArgument, {"f.npy", "objects"},
               [&] { parse(file("'|O'", "False")); });
  expect_error(ErrorCode::kInvalidArgument, {"f.npy", ">f4", "astype"},
               [&] { parse(file("'>f4'", "False")); });
  expect_error(ErrorCode::kInvalidArgument, {"f.npy", "structured"},
               [&] { parse(file("[('a', '<f4')]", "False")); });
  expect_error(ErrorCode::kInvalidArgument, {"version 4"}, [&] { parse(npy_file("{}", "", 4)); });
}

TEST(Npy, EveryTruncationIsAnError) {
  const auto file =
      npy_file("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", "12345678");
  for (std::size_t size = 6; size < file.size(); ++size) {
    expect_error(ErrorCode::kDataLoss, {"f.npy", "truncated"},
                 [&] { parse(file.substr(0, size)); });
  }
  expect_error(ErrorCode::kInvalidArgument, {"not a .npy"}, [&] { parse(file.substr(0, 5)); });
  expect_error(ErrorCode::kDataLoss, {"too long", "8 bytes", "has 9"}, [&] { parse(file + "x"); });
}

TEST(Npy, DamagedHeadersAreDataLoss) {
  for (const std::string dictionary :
       {"{'descr': '<f4', 'fortran_order': False}", "{'descr' '<f4'}", "{}",
        "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1, x)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,"}) {
    expect_error(ErrorCode::kDataLoss, {"f.npy"}, [&] { parse(npy_file(dictionary, "1234")); });
  }
}

TEST(Npy, ReadsWhatNumpySaves) {
  const TemporaryDirectory folder;
  testing::run_python(R"(
import sys, numpy
for name in "float32 float64 float16 int64 int32 int16 int8 uint8 bool".split():
    numpy.save(f"{sys.argv[1]}/{name}.npy", (numpy.arange(24) % 2).reshape(2, 3, 4).astype(name))
numpy.save(f"{sys.argv[1]}/fortran.npy", numpy.zeros((2, 3)).T)
numpy.save(f"{sys.argv[1]}/object.npy", numpy.array([None, 1]))
)",
                      {folder.path().string()});
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    if (dtype == DType::kBFloat16) continue;
    const auto path = folder.path() / fmt::format("{}.npy", to_string(dtype));
    const auto array = parse_npy(read_file(path), path.string());
    EXPECT_EQ(array.view.dtype, dtype);
    EXPECT_EQ(array.view.shape, (Shape{2, 3, 4}));
    EXPECT_EQ(array.view.data.size(), 24 * size_of(dtype));
  }
  for (const auto* name : {"fortran.npy", "object.npy"}) {
    expect_error(ErrorCode::kInvalidArgument, {name},
                 [&] { parse_npy(read_file(folder.path() / name), name); });
  }
}

}  // namespace
}  // namespace funcpipe

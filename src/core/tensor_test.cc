#include "core/tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace funcpipe {
namespace {

TEST(TensorTest, NamesOfElementTypesReadBack) {
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(dtype_from_string(to_string(dtype)), dtype);
  }
  EXPECT_THROW(dtype_from_string("complex64"), Error);
}

TEST(TensorTest, Sizes) {
  EXPECT_EQ(size_of(DType::kFloat32), 4U);
  EXPECT_EQ(size_of(DType::kBFloat16), 2U);
  EXPECT_EQ(size_of(DType::kInt64), 8U);
  EXPECT_EQ(size_of(DType::kBool), 1U);
  EXPECT_EQ(element_count({}), 1);
  EXPECT_EQ(element_count({2, 3, 4}), 24);
  EXPECT_EQ(element_count({2, 0}), 0);
  EXPECT_EQ(to_string(Shape{32, 1, 28}), "[32, 1, 28]");
  EXPECT_EQ(to_string(Shape{}), "[]");
}

}  // namespace
}  // namespace funcpipe

// SPDX-License-Identifier: Apache-2.0
// Reading and writing one element of any type at a 5-D index: all the reference knows about memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "problem/pass.h"

namespace retrograd::engines::reference {

using Load = double (*)(const std::byte* address);
// The function that reads `dtype` and rounds what it read: chosen once a pass, not once an element.
Load load_function(DType dtype, OperandRounding rounding);

using Store = void (*)(std::byte* address, float value);
Store store_function(DType dtype);

struct Index5 {
  int64_t n, c, d, h, w;
};

inline int64_t element_offset(const problem::Strides5& s, const Index5& i) {
  return i.n * s[0] + i.c * s[1] + i.d * s[2] + i.h * s[3] + i.w * s[4];
}

class Source {
 public:
  Source(const problem::PassTensor& tensor, const void* address, OperandRounding rounding)
      : base_(static_cast<const std::byte*>(address)),
        strides_(tensor.strides),
        width_(static_cast<int64_t>(size_of(tensor.dtype))),
        load_(load_function(tensor.dtype, rounding)) {}
  double operator()(const Index5& i) const { return load_(base_ + element_offset(strides_, i) * width_); }

 private:
  const std::byte* base_;
  problem::Strides5 strides_;
  int64_t width_;
  Load load_;
};

class Destination {
 public:
  Destination(const problem::PassTensor& tensor, void* address)
      : base_(static_cast<std::byte*>(address)),
        strides_(tensor.strides),
        width_(static_cast<int64_t>(size_of(tensor.dtype))),
        store_(store_function(tensor.dtype)) {}
  // The sum becomes FP32, then is rounded once more to the type: what an engine with exact FP32 sums gives.
  void put(const Index5& i, double sum) const {
    store_(base_ + element_offset(strides_, i) * width_, static_cast<float>(sum));
  }

 private:
  std::byte* base_;
  problem::Strides5 strides_;
  int64_t width_;
  Store store_;
};

}  // namespace retrograd::engines::reference

// SPDX-License-Identifier: Apache-2.0
// Tensors of PyTorch as the library sees them.
#pragma once

#include <torch/csrc/stable/tensor.h>

#include <initializer_list>
#include <optional>

#include "counters.h"
#include "plan_cache.h"
#include "retrograd/retrograd.h"

namespace retrograd_torch {

// A view of a tensor that somebody else holds.
class Operand {
 public:
  explicit Operand(const torch::stable::Tensor& tensor);

  int rank() const { return rank_; }
  int64_t size(int axis) const { return sizes_[axis]; }
  const int64_t* sizes() const { return sizes_; }
  const int64_t* strides() const { return strides_; }
  int32_t torch_dtype() const { return torch_dtype_; }
  bool is_empty() const;
  bool is_cpu_strided() const { return cpu_strided_; }
  std::optional<retrogradDtype_t> dtype() const;
  const void* address() const { return tensor_.const_data_ptr(); }

  retrogradTensor_t described(retrogradDtype_t dtype) const;
  void append_to(Key& key) const;

 private:
  const torch::stable::Tensor& tensor_;
  int rank_ = 0;
  int64_t* sizes_ = nullptr;
  int64_t* strides_ = nullptr;
  int32_t torch_dtype_ = 0;
  bool cpu_strided_ = false;
};

// kTaken, or what the operands alone rule out.
Outcome judge(std::initializer_list<const Operand*> operands);

// An uninitialised tensor; an undefined one for a result that is not wanted.
torch::stable::Tensor allocate(const ResultLayout& layout, int32_t torch_dtype);

// A result as part of a problem.
retrogradTensor_t described(const ResultLayout& layout, retrogradDtype_t dtype);

}  // namespace retrograd_torch

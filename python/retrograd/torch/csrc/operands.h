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
  // A strided tensor in main memory or on an NVIDIA GPU; of others nothing else is known.
  bool is_known() const { return known_; }
  retrogradDevice_t device() const { return device_; }
  std::optional<retrogradDtype_t> dtype() const;
  const void* address() const { return tensor_.const_data_ptr(); }

  retrogradTensor_t described(retrogradDtype_t dtype) const;
  // Type and device, which all operands of a call share, and shape and strides, which they do not.
  void append_kind_to(Key& key) const;
  void append_to(Key& key) const;

 private:
  const torch::stable::Tensor& tensor_;
  int rank_ = 0;
  int64_t* sizes_ = nullptr;
  int64_t* strides_ = nullptr;
  int32_t torch_dtype_ = 0;
  retrogradDevice_t device_{RETROGRAD_CPU, 0};
  bool known_ = false;
};

// The kind of device that a call with these operands was made for: one on a GPU makes it a call there.
retrogradDeviceType_t where(std::initializer_list<const Operand*> operands);

// kTaken, or what the operands alone rule out.
Outcome judge(std::initializer_list<const Operand*> operands);

// An uninitialised tensor of PyTorch's allocator; an undefined one for a result that is not wanted.
torch::stable::Tensor allocate(const ResultLayout& layout, int32_t torch_dtype, retrogradDevice_t device);
// That many bytes; an undefined tensor for 0 bytes, and where there is no memory.
torch::stable::Tensor allocate_bytes(size_t bytes, retrogradDevice_t device);

// A result as part of a problem.
retrogradTensor_t described(const ResultLayout& layout, retrogradDtype_t dtype, retrogradDevice_t device);

}  // namespace retrograd_torch

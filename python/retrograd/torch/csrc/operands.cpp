// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <algorithm>

namespace retrograd_torch {
namespace {

void check(AOTITorchError error) {
  if (error != 0)
    throw std::runtime_error("retrograd.torch: PyTorch does not answer questions about a tensor");
}

}  // namespace

Operand::Operand(const torch::stable::Tensor& tensor) : tensor_(tensor) {
  const AtenTensorHandle handle = tensor.get();
  int32_t device = 0, layout = 0;
  check(aoti_torch_get_device_type(handle, &device));
  check(aoti_torch_get_layout(handle, &layout));
  check(aoti_torch_get_dtype(handle, &torch_dtype_));
  cpu_strided_ = device == aoti_torch_device_type_cpu() && layout == aoti_torch_layout_strided();
  if (!cpu_strided_) return;
  int64_t rank = 0;
  check(aoti_torch_get_dim(handle, &rank));
  rank_ = static_cast<int>(rank);
  check(aoti_torch_get_sizes(handle, &sizes_));
  check(aoti_torch_get_strides(handle, &strides_));
}

bool Operand::is_empty() const {
  return std::any_of(sizes_, sizes_ + rank_, [](int64_t n) { return n == 0; });
}

std::optional<retrogradDtype_t> Operand::dtype() const {
  static const int32_t f32 = aoti_torch_dtype_float32();
  static const int32_t f16 = aoti_torch_dtype_float16();
  static const int32_t bf16 = aoti_torch_dtype_bfloat16();
  if (torch_dtype_ == f32) return RETROGRAD_F32;
  if (torch_dtype_ == f16) return RETROGRAD_F16;
  if (torch_dtype_ == bf16) return RETROGRAD_BF16;
  return std::nullopt;
}

retrogradTensor_t Operand::described(retrogradDtype_t dtype) const {
  retrogradTensor_t tensor{};
  tensor.dtype = dtype;
  tensor.rank = rank_;
  tensor.shape = sizes_;
  tensor.strides = strides_;
  tensor.device = {RETROGRAD_CPU, 0};
  return tensor;
}

void Operand::append_to(Key& key) const {
  key.push(rank_);
  for (int axis = 0; axis < rank_; ++axis) {
    key.push(sizes_[axis]);
    key.push(strides_[axis]);
  }
}

Outcome judge(std::initializer_list<const Operand*> operands) {
  const Operand& first = **operands.begin();
  for (const Operand* operand : operands)
    if (!operand->is_cpu_strided()) return Outcome::kLayout;
  if (!first.dtype()) return Outcome::kElementType;
  for (const Operand* operand : operands)
    if (operand->torch_dtype() != first.torch_dtype()) return Outcome::kMixedTypes;
  for (const Operand* operand : operands)
    if (operand->is_empty()) return Outcome::kEmpty;
  return Outcome::kTaken;
}

torch::stable::Tensor allocate(const ResultLayout& layout, int32_t torch_dtype) {
  if (layout.rank == 0) return torch::stable::Tensor();
  AtenTensorHandle handle = nullptr;
  if (aoti_torch_empty_strided(layout.rank, layout.sizes.data(), layout.strides.data(), torch_dtype,
                               aoti_torch_device_type_cpu(), 0, &handle) != 0)
    throw std::runtime_error("retrograd.torch: no memory for a gradient");
  return torch::stable::Tensor(handle);
}

retrogradTensor_t described(const ResultLayout& layout, retrogradDtype_t dtype) {
  retrogradTensor_t tensor{};
  tensor.dtype = dtype;
  tensor.rank = layout.rank;
  tensor.shape = layout.sizes.data();
  tensor.strides = layout.strides.data();
  tensor.device = {RETROGRAD_CPU, 0};
  return tensor;
}

}  // namespace retrograd_torch

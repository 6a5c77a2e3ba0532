// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include <algorithm>
#include <stdexcept>
#include <string>

namespace retrograd_torch {
namespace {

void check(AOTITorchError error) {
  if (error != 0)
    throw std::runtime_error("retrograd.torch: PyTorch does not answer questions about a tensor");
}

int32_t torch_device_type(retrogradDevice_t device) {
  return device.type == RETROGRAD_CUDA ? aoti_torch_device_type_cuda() : aoti_torch_device_type_cpu();
}

AtenTensorHandle empty(int rank, const int64_t* sizes, const int64_t* strides, int32_t torch_dtype,
                       retrogradDevice_t device) {
  AtenTensorHandle handle = nullptr;
  if (aoti_torch_empty_strided(rank, sizes, strides, torch_dtype, torch_device_type(device), device.index,
                               &handle) != 0)
    return nullptr;
  return handle;
}

}  // namespace

Operand::Operand(const torch::stable::Tensor& tensor) : tensor_(tensor) {
  const AtenTensorHandle handle = tensor.get();
  int32_t device = 0, layout = 0;
  check(aoti_torch_get_device_type(handle, &device));
  check(aoti_torch_get_layout(handle, &layout));
  check(aoti_torch_get_dtype(handle, &torch_dtype_));
  if (device == aoti_torch_device_type_cuda()) {
    device_.type = RETROGRAD_CUDA;
    check(aoti_torch_get_device_index(handle, &device_.index));
  }
  known_ = (device == aoti_torch_device_type_cpu() || device_.type == RETROGRAD_CUDA) &&
           layout == aoti_torch_layout_strided();
  if (!known_) return;
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
  tensor.device = device_;
  return tensor;
}

void Operand::append_kind_to(Key& key) const {
  key.push(torch_dtype_);
  key.push(device_.type);
  key.push(device_.index);
}

void Operand::append_to(Key& key) const {
  key.push(rank_);
  for (int axis = 0; axis < rank_; ++axis) {
    key.push(sizes_[axis]);
    key.push(strides_[axis]);
  }
}

retrogradDeviceType_t where(std::initializer_list<const Operand*> operands) {
  const bool on_gpu = std::any_of(operands.begin(), operands.end(), [](const Operand* operand) {
    return operand->device().type == RETROGRAD_CUDA;
  });
  return on_gpu ? RETROGRAD_CUDA : RETROGRAD_CPU;
}

Outcome judge(std::initializer_list<const Operand*> operands) {
  const Operand& first = **operands.begin();
  for (const Operand* operand : operands)
    if (!operand->is_known() || operand->device().type != first.device().type ||
        operand->device().index != first.device().index)
      return Outcome::kLayout;
  if (!first.dtype()) return Outcome::kElementType;
  for (const Operand* operand : operands)
    if (operand->torch_dtype() != first.torch_dtype()) return Outcome::kMixedTypes;
  for (const Operand* operand : operands)
    if (operand->is_empty()) return Outcome::kEmpty;
  return Outcome::kTaken;
}

torch::stable::Tensor allocate(const ResultLayout& layout, int32_t torch_dtype, retrogradDevice_t device) {
  if (layout.rank == 0) return torch::stable::Tensor();
  const AtenTensorHandle handle =
      empty(layout.rank, layout.sizes.data(), layout.strides.data(), torch_dtype, device);
  // Programs that try again with less look for the first words.
  if (handle == nullptr)
    throw std::runtime_error(std::string(device.type == RETROGRAD_CUDA ? "CUDA out of memory. " : "") +
                             "retrograd.torch: no memory for a gradient");
  return torch::stable::Tensor(handle);
}

torch::stable::Tensor allocate_bytes(size_t bytes, retrogradDevice_t device) {
  if (bytes == 0) return torch::stable::Tensor();
  const int64_t size = static_cast<int64_t>(bytes), stride = 1;
  const AtenTensorHandle handle = empty(1, &size, &stride, aoti_torch_dtype_uint8(), device);
  return handle == nullptr ? torch::stable::Tensor() : torch::stable::Tensor(handle);
}

retrogradTensor_t described(const ResultLayout& layout, retrogradDtype_t dtype, retrogradDevice_t device) {
  retrogradTensor_t tensor{};
  tensor.dtype = dtype;
  tensor.rank = layout.rank;
  tensor.shape = layout.sizes.data();
  tensor.strides = layout.strides.data();
  tensor.device = device;
  return tensor;
}

}  // namespace retrograd_torch

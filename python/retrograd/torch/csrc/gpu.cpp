// SPDX-License-Identifier: Apache-2.0
#include "gpu.h"

#include <dlfcn.h>
#include <torch/csrc/stable/library.h>

#include <array>
#include <stdexcept>

#include "kernel_parts.h"
#include "retrograd/retrograd.h"

namespace retrograd_torch {
namespace {

// A symbol of a library that PyTorch has loaded; null where it has not, or has no such symbol.
template <class Function>
Function symbol(const char* library, const char* name) {
  void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : reinterpret_cast<Function>(dlsym(handle, name));
}

using CurrentStream = int32_t (*)(int32_t device_index, void** stream);

}  // namespace

void* current_stream(int32_t device_index) {
  static const auto ask = symbol<CurrentStream>("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream");
  void* stream = nullptr;
  if (ask == nullptr || ask(device_index, &stream) != 0)
    throw std::runtime_error("retrograd.torch: PyTorch does not say which CUDA stream is the current one");
  return stream;
}

bool tf32_is_allowed(Products products) {
  std::array<StableIValue, 1> stack{};
  put(stack.data(), 0, static_cast<int64_t>(products));
  if (torch_call_dispatcher("retrograd::allows_tf32", "", stack.data(), TORCH_ABI_VERSION) != 0)
    throw std::runtime_error("retrograd.torch: PyTorch does not say whether TF32 is allowed");
  return take<bool>(stack.data(), 0);
}

const char* why_no_gpu() {
  int32_t count = 0;
  if (retrogradGetDeviceCount(RETROGRAD_CUDA, &count) != RETROGRAD_OK) return retrogradGetLastError();
  if (count == 0) return "this libretrograd finds no NVIDIA GPU, or was built without CUDA";
  if (symbol<CurrentStream>("libtorch_cuda.so", "aoti_torch_get_current_cuda_stream") == nullptr)
    return "PyTorch's libtorch_cuda.so is not loaded";
  return nullptr;
}

}  // namespace retrograd_torch

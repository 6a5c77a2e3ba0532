// SPDX-License-Identifier: Apache-2.0
// What CUDA tensors need of PyTorch and its stable ABI leaves to libtorch_cuda.so, or cannot say. Symbols are
// looked up at run time, so that one object serves PyTorch with and without CUDA.
#pragma once

#include <cstdint>

namespace retrograd_torch {

// The stream that PyTorch's own kernels would use on this device now.
void* current_stream(int32_t device_index);

// Which of PyTorch's settings of TF32 a stock kernel looks at.
enum class Products { kConvolution, kMatrix };

// Whether the user lets PyTorch round float32 operands to TF32. Asked at every call: the setting may change.
// Python is asked, which takes 1.5 us: the stable ABI has no call for it.
bool tf32_is_allowed(Products products);

// Null when there is a GPU that the library has engines for, otherwise a sentence.
const char* why_no_gpu();

}  // namespace retrograd_torch

// SPDX-License-Identifier: Apache-2.0
// The operators that are overridden, as PyTorch's dispatcher calls them: arguments on a stack, results in
// their place.
#pragma once

#include <torch/csrc/stable/library.h>

#include <string>

namespace retrograd_torch {

void convolution_backward(StableIValue* stack, uint64_t arguments, uint64_t results);
void conv_tbc_backward(StableIValue* stack, uint64_t arguments, uint64_t results);
void avg_pool2d_backward(StableIValue* stack, uint64_t arguments, uint64_t results);
void avg_pool3d_backward(StableIValue* stack, uint64_t arguments, uint64_t results);

// What an original kernel said when it failed on this thread: PyTorch 2.10 to 2.12 do not carry it across.
void note_original_error(std::string text);

}  // namespace retrograd_torch

// SPDX-License-Identifier: Apache-2.0
// Memory that belongs to a stream's order: for what a workspace is not asked for, since it hardly ever
// happens. Captured in a graph, it becomes the graph's.
#pragma once

#include <cstddef>

#include "kernels/cuda/shapes.h"

namespace retrograd::kernels::cuda {

// Null where there is none.
void* take_scratch(size_t bytes, Stream stream);
void give_back_scratch(void* scratch, Stream stream);
void copy_bytes(void* target, const void* source, size_t bytes, Stream stream);
void clear_bytes(void* target, size_t bytes, Stream stream);

}  // namespace retrograd::kernels::cuda

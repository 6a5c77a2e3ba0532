// SPDX-License-Identifier: Apache-2.0
// The __launch_bounds__ of compiled kernels, as nvcc leaves them in a program.
#pragma once

#include <string>
#include <unordered_map>

namespace retrograd::test::idle_cuda {

// Threads of a block at most, by mangled name, of those kernels that have bounds. `binary` is what
// __cudaRegisterFatBinary gets. Nothing of what is compressed, which depends on nvcc and its options.
std::unordered_map<std::string, int> launch_bounds(const void* binary);

}  // namespace retrograd::test::idle_cuda

// SPDX-License-Identifier: Apache-2.0
// A CUDA runtime that runs nothing and looks at what it is asked for: kernels, clusters, tensor maps, fills
// and copies. A program that links it in place of NVIDIA's needs no GPU; addresses need not be those of
// memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/machine.h"

namespace retrograd::test::idle_cuda {

struct Room {
  uintptr_t begin = 0;
  size_t bytes = 0;
};

struct Watch {
  GpuFacts gpu;
  const void* stream = nullptr;  // that everything must be put on
  std::vector<Room> rooms;       // that fills and copies may touch
  bool declines = false;         // tensor maps, and scratch memory: whoever wants some has to do without
};

// Forgets what was before, attributes of kernels too.
void begin(const Watch& watch);
// What broke a rule since then: "kernel: rule".
std::vector<std::string> complaints();
// Of the program's kernels: threads of a block at most, as far as they are known.
const std::unordered_map<const void*, int>& bounds();
// Since the program began.
int64_t launches();

}  // namespace retrograd::test::idle_cuda

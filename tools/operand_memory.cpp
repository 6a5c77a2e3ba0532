// SPDX-License-Identifier: Apache-2.0
// Fills operands from one short random sequence, repeated: a call's time does not depend on which numbers it
// meets, as long as they are finite and not all the same.
#include "tools/operand_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "problem/operand_views.h"
#include "tools/work.h"

namespace retrograd::tools {
namespace {

void fill(std::byte* block, size_t bytes, DType dtype) {
  constexpr size_t kPeriod = 4093;  // prime: rows of a tensor do not all hold the same numbers
  const size_t width = size_of(dtype);
  std::vector<std::byte> numbers(kPeriod * width);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  for (size_t i = 0; i < kPeriod; ++i) store_from_f32(dtype, numbers.data() + i * width, number(random));
  for (size_t at = 0; at < bytes; at += numbers.size())
    std::memcpy(block + at, numbers.data(), std::min(numbers.size(), bytes - at));
}

}  // namespace

Result<OperandMemory> OperandMemory::make(const problem::Problem& problem) {
  OperandMemory memory;
  // The system would grant more than there is, and end the program later.
  RG_TRY(const auto info, runtime::find_device(runtime::DeviceKind::kCpu, 0)->memory_info());
  size_t left = info.free_bytes;
  const auto views = views_of(problem.request);
  for (size_t i = 0; i < problem::kOperandCount; ++i) {
    const auto operand = static_cast<problem::Operand>(i);
    const problem::OperandFacts& facts = problem.facts(operand);
    if (!views[i] || !touches(problem, operand)) continue;
    const auto bytes = static_cast<size_t>(facts.end_byte - facts.lowest_byte);
    memory.blocks_[i] = bytes > left ? nullptr : allocate_block(bytes);
    if (!memory.blocks_[i])
      return Status(Code::kOutOfMemory, fmt::format("no memory for {} of {} bytes", facts.name, bytes));
    left -= bytes;
    fill(memory.blocks_[i].get(), bytes, views[i]->dtype);
    memory.bindings_.set(operand, memory.blocks_[i].get() - facts.lowest_byte);
  }
  return memory;
}

}  // namespace retrograd::tools

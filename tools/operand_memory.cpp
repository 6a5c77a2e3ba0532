// SPDX-License-Identifier: Apache-2.0
// Fills operands from one short random sequence, repeated: a call's time does not depend on which numbers it
// meets, as long as they are finite and not all the same.
#include "tools/operand_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
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

constexpr std::array<std::string_view, 3> kNames = {"finite", "one-inf", "all-nan"};

}  // namespace

std::string_view name_of(Values values) { return kNames[static_cast<size_t>(values)]; }

std::optional<Values> values_from_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Values>(found - kNames.begin());
}

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
    Part& part = memory.parts_[i];
    part.block = bytes > left ? nullptr : allocate_block(bytes);
    part.bytes = bytes;
    part.dtype = views[i]->dtype;
    if (!part.block)
      return Status(Code::kOutOfMemory, fmt::format("no memory for {} of {} bytes", facts.name, bytes));
    left -= bytes;
    memory.put(operand, Values::kFinite);
    memory.bindings_.set(operand, part.block.get() - facts.lowest_byte);
  }
  return memory;
}

void OperandMemory::put(problem::Operand operand, Values values) {
  const Part& own = part(operand);
  const size_t width = size_of(own.dtype), count = own.bytes / width;
  if (count == 0) return;
  fill(own.block.get(), own.bytes, own.dtype);
  if (values == Values::kOneInf)
    store_from_f32(own.dtype, own.block.get() + count / 2 * width, std::numeric_limits<float>::infinity());
  for (size_t i = 0; values == Values::kAllNan && i < count; ++i)
    store_from_f32(own.dtype, own.block.get() + i * width, std::numeric_limits<float>::quiet_NaN());
}

}  // namespace retrograd::tools

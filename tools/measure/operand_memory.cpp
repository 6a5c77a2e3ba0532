// SPDX-License-Identifier: Apache-2.0
// Fills operands from one short random sequence, repeated: a call's time does not depend on which numbers it
// meets, as long as they are finite and not all the same.
#include "tools/measure/operand_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <random>
#include <vector>

#include "problem/operand_views.h"
#include "tools/measure/work.h"

namespace retrograd::tools {
namespace {

// One period of what an operand holds; prime, so that rows of a tensor do not all hold the same numbers.
std::vector<std::byte> numbers_of(DType dtype, Values values) {
  constexpr size_t kPeriod = 4093;
  const size_t width = size_of(dtype);
  std::vector<std::byte> numbers(kPeriod * width);
  std::mt19937 random(1);
  std::uniform_real_distribution<float> number(-1, 1);
  for (size_t i = 0; i < kPeriod; ++i)
    store_from_f32(dtype, numbers.data() + i * width,
                   values == Values::kAllNan ? std::numeric_limits<float>::quiet_NaN() : number(random));
  return numbers;
}

// The period, then what is there already again and again: a device copies its own memory fastest.
Status repeat(runtime::Device& device, std::byte* block, size_t bytes,
              const std::vector<std::byte>& numbers) {
  size_t done = std::min(bytes, numbers.size());
  RG_CHECK(device.copy(block, numbers.data(), done));
  while (done < bytes) {
    const size_t next = std::min(done, bytes - done);
    RG_CHECK(device.copy(block + done, block, next));
    done += next;
  }
  return Status::ok();
}

constexpr std::array<std::string_view, 3> kNames = {"finite", "one-inf", "all-nan"};

}  // namespace

std::string_view name_of(Values values) { return kNames[static_cast<size_t>(values)]; }

std::optional<Values> values_from_name(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Values>(found - kNames.begin());
}

Result<OperandMemory> OperandMemory::make(const problem::Problem& problem, runtime::Device& device) {
  OperandMemory memory;
  memory.device_ = &device;
  // The system would grant more than there is, and end the program later.
  RG_TRY(const auto info, device.memory_info());
  size_t left = info.free_bytes;
  const auto views = views_of(problem.request);
  for (size_t i = 0; i < problem::kOperandCount; ++i) {
    const auto operand = static_cast<problem::Operand>(i);
    const problem::OperandFacts& facts = problem.facts(operand);
    if (!views[i] || !touches(problem, operand)) continue;
    const auto bytes = static_cast<size_t>(facts.end_byte - facts.lowest_byte);
    Part& part = memory.parts_[i];
    auto block = bytes > left ? Status(Code::kOutOfMemory, "") : DeviceBlock::allocate(device, bytes);
    if (!block.is_ok())
      return Status(Code::kOutOfMemory, fmt::format("no memory for {} of {} bytes", facts.name, bytes));
    part.block = std::move(block).value();
    part.bytes = bytes;
    part.dtype = views[i]->dtype;
    left -= bytes;
    RG_CHECK(memory.put(operand, Values::kFinite));
    memory.bindings_.set(operand, part.block.get() - facts.lowest_byte);
  }
  return memory;
}

Status OperandMemory::put(problem::Operand operand, Values values) {
  const Part& own = part(operand);
  const size_t width = size_of(own.dtype), count = own.bytes / width;
  if (count == 0) return Status::ok();
  RG_CHECK(repeat(*device_, own.block.get(), own.bytes, numbers_of(own.dtype, values)));
  if (values != Values::kOneInf) return Status::ok();
  std::array<std::byte, 8> infinite{};
  store_from_f32(own.dtype, infinite.data(), std::numeric_limits<float>::infinity());
  return device_->copy(own.block.get() + count / 2 * width, infinite.data(), width);
}

}  // namespace retrograd::tools

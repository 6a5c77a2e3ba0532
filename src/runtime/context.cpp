// SPDX-License-Identifier: Apache-2.0
// Creates a context and stores its options.
#include "runtime/context.h"

#include <utility>

namespace retrograd::runtime {
namespace {

bool is_option(int index) { return index >= 0 && index < Context::kOptionCount; }

}  // namespace

Result<std::shared_ptr<Context>> Context::create(Device& device) {
  RG_TRY(auto stream, device.create_stream());
  return std::shared_ptr<Context>(new Context(device, std::move(stream)));
}

std::optional<int64_t> Context::option(int index) const {
  if (!is_option(index)) return std::nullopt;
  std::lock_guard lock(mutex_);
  return options_[static_cast<size_t>(index)];
}

void Context::set_option(int index, int64_t value) {
  if (!is_option(index)) return;
  std::lock_guard lock(mutex_);
  options_[static_cast<size_t>(index)] = value;
}

}  // namespace retrograd::runtime

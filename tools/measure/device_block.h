// SPDX-License-Identifier: Apache-2.0
// Memory of a device, given back when its owner goes.
#pragma once

#include <cstddef>
#include <memory>

#include "runtime/device.h"

namespace retrograd::tools {

struct GiveBack {
  runtime::Device* device = nullptr;
  void operator()(std::byte* address) const { device->deallocate(address); }
};

class DeviceBlock {
 public:
  DeviceBlock() = default;
  // At least one byte is allocated.
  static Result<DeviceBlock> allocate(runtime::Device& device, size_t bytes) {
    RG_TRY(void* const address, device.allocate(bytes == 0 ? 1 : bytes));
    DeviceBlock block;
    block.block_ = std::unique_ptr<std::byte, GiveBack>(static_cast<std::byte*>(address), GiveBack{&device});
    return block;
  }
  std::byte* get() const { return block_.get(); }

 private:
  std::unique_ptr<std::byte, GiveBack> block_;
};

}  // namespace retrograd::tools

// SPDX-License-Identifier: Apache-2.0
// Context: a device with a default stream and options. The caller keeps track of each thread's current
// context.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/status.h"
#include "runtime/device.h"

namespace retrograd::runtime {

class Context {
 public:
  static constexpr int kOptionCount = 4;

  static Result<std::shared_ptr<Context>> create(Device& device);
  Device& device() const { return device_; }
  const std::shared_ptr<Stream>& default_stream() const { return default_stream_; }

  // Unset, or no option of that number: nullopt. Setting a number that is none does nothing.
  std::optional<int64_t> option(int index) const;
  void set_option(int index, int64_t value);

 private:
  Context(Device& device, std::shared_ptr<Stream> stream)
      : device_(device), default_stream_(std::move(stream)) {}
  Device& device_;
  std::shared_ptr<Stream> default_stream_;
  mutable std::mutex mutex_;
  std::array<std::optional<int64_t>, kOptionCount> options_;
};

}  // namespace retrograd::runtime

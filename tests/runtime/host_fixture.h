// SPDX-License-Identifier: Apache-2.0
// What the tests of streams and events share: the CPU, and streams and events made on it.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "runtime/device.h"

namespace retrograd::runtime {

inline Device& cpu() { return *find_device(DeviceKind::kCpu, 0); }

inline std::shared_ptr<Stream> make_stream(Device& device = cpu()) {
  auto stream = device.create_stream();
  EXPECT_TRUE(stream.is_ok()) << stream.status().message();
  return std::move(stream).value();
}

inline std::shared_ptr<Event> make_event(bool timing = true, Device& device = cpu()) {
  auto event = device.create_event(timing);
  EXPECT_TRUE(event.is_ok()) << event.status().message();
  return std::move(event).value();
}

inline ::testing::AssertionResult succeeds(const char* expression, const Status& status) {
  if (status.is_ok()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << expression << " failed: " << status.message();
}
#define RG_EXPECT_OK(expression) EXPECT_PRED_FORMAT1(::retrograd::runtime::succeeds, expression)

}  // namespace retrograd::runtime

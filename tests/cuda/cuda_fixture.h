// SPDX-License-Identifier: Apache-2.0
// Tests that need a GPU, and skip without one.
#pragma once

#include <gtest/gtest.h>

#include "runtime/device.h"

namespace retrograd::runtime {

class CudaTest : public testing::Test {
 protected:
  void SetUp() override {
    gpu_ = find_device(DeviceKind::kCuda, 0);
    if (gpu_ == nullptr) GTEST_SKIP() << "this machine has no GPU that CUDA can use";
  }
  Device& gpu() { return *gpu_; }

 private:
  Device* gpu_ = nullptr;
};

}  // namespace retrograd::runtime

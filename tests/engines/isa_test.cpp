// SPDX-License-Identifier: Apache-2.0
// Asking for the candidates, as the library does, limits the instruction set to what RETROGRAD_CPU_ISA says.
#include "engines/registry.h"
#include "kernels/asked_isa.h"

namespace retrograd::test {
namespace {

class AskedIsa : public testing::Environment {
  void SetUp() override {
    (void)engines::candidates(runtime::DeviceKind::kCpu);
    expect_asked_isa();
  }
};
[[maybe_unused]] testing::Environment* const asked_isa = testing::AddGlobalTestEnvironment(new AskedIsa);

}  // namespace
}  // namespace retrograd::test

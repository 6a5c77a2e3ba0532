// SPDX-License-Identifier: Apache-2.0
// Asking for the candidates, as the library does, limits the instruction set to what RETROGRAD_CPU_ISA says.
// RETROGRAD_TEST_TILES=1 has pairs of BF16 stand in for the tile registers that few machines have.
#include <cstdlib>

#include "engines/registry.h"
#include "kernels/asked_isa.h"

namespace retrograd::test {
namespace {

class AskedIsa : public testing::Environment {
  void SetUp() override {
    if (std::getenv("RETROGRAD_TEST_TILES") != nullptr && !kernels::cpu::let_pairs_stand_in_for_tiles())
      GTEST_SKIP() << "this machine has no products of bf16 pairs to stand in for tiles";
    (void)engines::candidates(runtime::DeviceKind::kCpu);
    expect_asked_isa();
  }
};
[[maybe_unused]] testing::Environment* const asked_isa = testing::AddGlobalTestEnvironment(new AskedIsa);

}  // namespace
}  // namespace retrograd::test

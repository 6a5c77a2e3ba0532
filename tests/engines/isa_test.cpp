// SPDX-License-Identifier: Apache-2.0
// The instruction set that RETROGRAD_CPU_ISA asks for is the one that the kernels use. CMake starts this
// program once for each; where the machine has it not, all tests are skipped with the reason.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/settings.h"
#include "engines/registry.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/tile_product.h"

namespace retrograd::test {
namespace {

// Highway's names for what the setting calls `isa`.
bool is_called(const std::string& isa, const std::string& target) {
  if (isa == "avx512") return target.starts_with("AVX3");
  if (isa == "avx2") return target == "AVX2";
  if (isa == "sse4") return target == "SSE4";
  if (isa == "ssse3") return target == "SSSE3";
  return target == "SCALAR" || target == "EMU128" || target == "NEON";
}

// Every test of this program goes through the candidates, as the library does.
class AskedFor : public testing::Environment {
  void SetUp() override {
    (void)engines::candidates(runtime::DeviceKind::kCpu);
    const std::string isa = settings().cpu_isa, target = kernels::cpu::target_name();
    if (!isa.empty() && !is_called(isa, target))
      GTEST_SKIP() << "this machine has no " << isa << ", the kernels use " << target;
  }
};
[[maybe_unused]] testing::Environment* const asked_for = testing::AddGlobalTestEnvironment(new AskedFor);

TEST(IsaTest, EveryNameThatTheSettingTakesIsKnownToTheKernels) {
  (void)kernels::cpu::tile_width();  // from here on a limit changes nothing
  const std::string before = kernels::cpu::target_name();
  for (const std::string_view isa : kCpuIsas) EXPECT_TRUE(kernels::cpu::limit_targets(isa)) << isa;
  EXPECT_FALSE(kernels::cpu::limit_targets("avx1024"));
  EXPECT_TRUE(kernels::cpu::limit_targets(""));
  EXPECT_EQ(kernels::cpu::target_name(), before);
}

TEST(IsaTest, TheWidthOfATileIsTwoVectorsOfTheInstructionSetAskedFor) {
  const std::string& isa = settings().cpu_isa;
  if (isa.empty()) GTEST_SKIP() << "RETROGRAD_CPU_ISA is not set";
  const std::map<std::string, int64_t> widths = {{"avx512", 32}, {"avx2", 16}, {"sse4", 8}, {"ssse3", 8}};
  const auto width = widths.find(isa);
  if (width != widths.end()) {
    EXPECT_EQ(kernels::cpu::tile_width(), width->second);
  } else {
    EXPECT_LE(kernels::cpu::tile_width(), 8);
  }
}

}  // namespace
}  // namespace retrograd::test

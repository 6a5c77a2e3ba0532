// SPDX-License-Identifier: Apache-2.0
// The names of instruction sets, and the limit for the other tests of this program.
#include <map>

#include "kernels/asked_isa.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::test {
namespace {

class AskedIsa : public testing::Environment {
  void SetUp() override {
    kernels::cpu::limit_targets(settings().cpu_isa);
    expect_asked_isa();
  }
};
[[maybe_unused]] testing::Environment* const asked_isa = testing::AddGlobalTestEnvironment(new AskedIsa);

TEST(IsaTest, EveryNameThatTheSettingTakesIsKnownToTheKernels) {
  (void)kernels::cpu::widest_shape().tile_width();  // from here on a limit changes nothing
  const std::string before = kernels::cpu::target_name();
  for (const std::string_view isa : kCpuIsas) EXPECT_TRUE(kernels::cpu::limit_targets(isa)) << isa;
  EXPECT_FALSE(kernels::cpu::limit_targets("avx1024"));
  EXPECT_TRUE(kernels::cpu::limit_targets(""));
  EXPECT_EQ(kernels::cpu::target_name(), before);
}

TEST(IsaTest, ATileIsTwoVectorsWide) {
  const std::map<std::string, int64_t> widths = {{"amx_fp16", 32}, {"amx_bf16", 32}, {"avx512_bf16", 32},
                                                 {"avx512", 32},   {"avx2", 16},     {"sse4", 8},
                                                 {"neon", 8}};
  const auto width = widths.find(settings().cpu_isa);
  if (width == widths.end()) GTEST_SKIP() << "RETROGRAD_CPU_ISA does not say how wide a vector is";
  EXPECT_EQ(kernels::cpu::widest_shape().tile_width(), width->second);
}

}  // namespace
}  // namespace retrograd::test

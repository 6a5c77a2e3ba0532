// SPDX-License-Identifier: Apache-2.0
// Problems that span more than any memory are declined with a reason, quickly and without overflow.
#include <gtest/gtest.h>

#include "engines/cpu/limits.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem_text.h"
#include "support/legal_problem.h"

namespace retrograd::engines::cpu {
namespace {

TEST(CpuLimitsTest, EnormousProblemsAreDeclinedOrPlannedInLittleMemory) {
  for (const char* text : {
           "conv input=1x1x1099511627777@0x0x0 weight=1x1x1",
           "conv input=1x1x1099511627777@0x0x0 weight=1x1x1099511627777@0x0x0 grad_weight=1x1x1099511627777",
           "conv input=1x1x1 weight=1x1x1 padding=1125899906842624 stride=1125899906842624",
           "conv input=1x1x536870912@0x0x0 weight=1x1x524288 mask=i",
           "conv input=288230376151711744x1x1@0x0x0 weight=1x1x1 grad_output=288230376151711744x1x1@0x0x0 "
           "mask=w",
           "conv input=1x1x4x4 weight=1x1x1x1 stride=70000x70000 padding=140000x140000",
           "avgpool input=1x1x1 kernel=1099511627776 padding=549755813888",
           "avgpool input=1x1x1x1x1 kernel=1099511627776 padding=549755813888",
       }) {
    SCOPED_TRACE(text);
    const auto request = problem::parse_request(text);
    ASSERT_TRUE(request.is_ok()) << request.status().message();
    const auto all = candidates(runtime::DeviceKind::kCpu);
    int asked = 0, declined = 0;
    for (const problem::Pass& pass : test::legal_problem(request.value()).passes) {
      if (std::holds_alternative<problem::BiasPass>(pass)) continue;
      for (const Candidate* candidate : all.first(all.size() - 1)) {
        const Support support = candidate->supports(pass, machine_of(runtime::DeviceKind::kCpu));
        ++asked;
        if (support.accepted()) {
          EXPECT_LT(candidate->make_step(pass, machine_of(runtime::DeviceKind::kCpu))->workspace_bytes(),
                    size_t{1} << 30)
              << candidate->name();
        } else {
          EXPECT_FALSE(support.reason().empty()) << candidate->name();
          ++declined;
        }
      }
    }
    EXPECT_GT(declined, 0);
    EXPECT_GT(asked, 0);
  }
}

TEST(CpuLimitsTest, LargeProblemsOfThisWorldAreNot) {
  for (const char* text : {
           "conv input=64x256x224x224 weight=256x256x3x3 padding=1x1",
           "conv input=2x32x512x512x512 weight=32x32x3x3x3 padding=1x1x1",
           "conv input=1x512x16777216 weight=512x512x3 stride=2",
           "conv input=8x2048x33x33 weight=256x2048x3x3 dilation=36x36 padding=36x36",
       }) {
    for (const problem::Pass& pass : test::legal_problem(problem::parse_request(text).value()).passes) {
      const auto* conv = std::get_if<problem::ConvPass>(&pass);
      EXPECT_FALSE(conv != nullptr && unfit_size(*conv)) << text;
    }
  }
}

}  // namespace
}  // namespace retrograd::engines::cpu

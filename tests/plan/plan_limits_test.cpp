// SPDX-License-Identifier: Apache-2.0
// Planning takes no longer, and no more memory, where a tensor is enormous: lists have bounds, or are
// formulas.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <chrono>
#include <utility>

#include "base/machine.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::plan {
namespace {

long resident_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

TEST(PlanLimitsTest, EnormousTensorsArePlannedAtOnce) {
  const std::pair<runtime::DeviceKind, Machine> machines[] = {
      {runtime::DeviceKind::kCpu, engines::machine_of(runtime::DeviceKind::kCpu)},
      {runtime::DeviceKind::kCpu, *named_machine("no-vectors")},
      {runtime::DeviceKind::kCuda, *named_machine("h200")}};
  for (const char* text : {
           "conv input=1x100000000x4x9 weight=3x100000000x2x2",
           "conv input=1x3x4x9 weight=100000000x3x2x2",
           "conv input=100000000x4x3x3 weight=4x4x3x3 padding=1x1",
           "conv input=1x4x9x100000000 weight=4x4x3x3 padding=1x1",
           "conv input=1x100000000x2 weight=100000000x1x1 groups=65535",
           "conv input=1x65535x7x7 weight=65535x1x3x3 groups=65535 padding=1x1",
           "conv input=1x100000000x40x40 weight=100000000x100000x1x1 groups=1000",
           "conv input=1x1000000x4 weight=1000000x1000000x3",
           "conv input=1x2x3000x3000 weight=2x2x2999x2999",
           "conv input=1x8x100000000 weight=8x8x50000000",
           "conv input=1x4x2000000 weight=4x4x3 stride=1000000",
           "conv input=1x4x4000x4000 weight=4x4x3x3 stride=2000x2000",
           "conv input=1x3x4000x4000 weight=8x3x255x255 stride=255x255",
           "conv input=1x100000000x9 weight=100000000x8x4 stride=4 transposed=1",
           "conv input=3x8x2147483648x1 weight=8x1x100x4 groups=8 stride=1000000000000x1 padding=1x2 mask=i",
           "conv input=3x8x1x2147483648 weight=8x1x1x3 groups=8 stride=1x1000000000000 padding=0x1 mask=i",
           "conv input=3x4x2147483648x1 weight=8x4x3x1 stride=1000000000000x1 padding=1x0 mask=i",
           "conv input=3x8x2147483648x1x1 weight=8x1x3x1x1 groups=8 stride=1000000000000x1x1 mask=i",
           "conv input=2x8x1x3 weight=8x4x3x2147483647 transposed=1 mask=w",
           "conv input=8x2147483647x4 weight=8x2147483647x2 stride=1000000000000 mask=w",
           "conv_tbc input=100000000x2x3 weight=3x3x4 pad=1",
           "avgpool input=1x1x100000000 kernel=50000000 padding=25000000",
           "avgpool input=1x100000000x9x9 kernel=3x3 stride=2x2",
           "avgpool input=1x2x100000000x2x2 kernel=2x2x2 stride=1x3x8 padding=1x1x1",
           "avgpool input=1x2x65535x8x4 kernel=2x8x2 stride=1x1x2 padding=1x1x1",
       }) {
    SCOPED_TRACE(text);
    auto request = problem::parse_request(text);
    ASSERT_TRUE(request.is_ok()) << request.status().message();
    const auto problem = problem::judge(std::move(request).value());
    if (!problem.is_ok()) continue;  // refused is planned at once
    const long before = resident_kilobytes();
    const auto begin = std::chrono::steady_clock::now();
    for (const auto& [kind, machine] : machines)
      for (const problem::Pass& pass : problem.value().passes)
        for (const engines::Candidate* candidate : engines::candidates(kind))
          if (candidate->supports(pass, machine).accepted()) {
            const auto step = candidate->make_step(pass, machine);
            EXPECT_LT(resident_kilobytes() - before, 65536) << candidate->name() << " " << name_of(pass);
          }
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - begin;
    EXPECT_LT(elapsed.count(), 10);  // far beyond what a busy machine needs, far below a list of 10^8
  }
}

}  // namespace
}  // namespace retrograd::plan

// SPDX-License-Identifier: Apache-2.0
// Any padding as one that the compiler knows and a shift: tiles of depthwise_grad_input.cu, here as plain
// loops, read with every tap what x[q] = Σ_k y[(q + P − k)/S]·w[k] says.
#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "kernels/cuda/depthwise/depthwise_plan.h"

namespace retrograd::kernels::cuda::depthwise_rows_shift_test {
namespace {

using Terms = std::set<std::pair<int64_t, int64_t>>;  // (tap, place of y)

TEST(DepthwiseRows, TilesReadWhatTheFormulaSays) {
  constexpr int64_t kRows = 3;
  for (int64_t kernel : {3, 5, 7})
    for (int64_t stride : {1, 2})
      for (int64_t kp : {kernel / 2, kernel / 2 + 1})
        for (int64_t pad = -9; pad <= 12; ++pad) {
          const Axis axis{20, 20, kernel, stride, 1, pad};
          const RowsShift s = rows_shift(axis, kp);
          ASSERT_EQ(kp + s.odd + stride * s.shift, pad);
          ASSERT_TRUE(s.odd >= 0 && s.odd < stride);
          for (int64_t q = 0; q < axis.x; ++q) {
            Terms expected, found;
            for (int64_t k = 0; k < kernel; ++k)
              if ((q + pad - k) % stride == 0) expected.insert({k, (q + pad - k) / stride});
            const int64_t tile = (q + s.odd) / (kRows * stride), a = (q + s.odd) % (kRows * stride);
            for (int64_t r = -kernel; r <= kRows + kernel; ++r)
              if (const int64_t k = a + kp - stride * r; k >= 0 && k < kernel)
                found.insert({k, tile * kRows + s.shift + r});
            ASSERT_EQ(found, expected) << kernel << " " << stride << " " << kp << " " << pad << " " << q;
          }
        }
}

}  // namespace
}  // namespace retrograd::kernels::cuda::depthwise_rows_shift_test

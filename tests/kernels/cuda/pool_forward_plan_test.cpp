// SPDX-License-Identifier: Apache-2.0
// How average pooling forward is cut for a GPU: what windows hold and count, and which kernel takes them.
#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::kernels::cuda {
namespace {

Pool pool_of(PoolAxis d, PoolAxis h, PoolAxis w, bool count_include_pad = true) {
  Pool pool{};
  pool.batch = 2;
  pool.channels = 8;
  pool.axes[0] = d;
  pool.axes[1] = h;
  pool.axes[2] = w;
  pool.count_include_pad = count_include_pad;
  return pool;
}
constexpr PoolAxis kFlat{1, 1, 1, 1, 0};

// Place by place: what a window holds lies inside x, what it counts inside x and the padding, if that counts.
TEST(PoolForwardPlan, WindowsHoldAndCountWhatTheyShould) {
  for (int x = 1; x <= 7; ++x)
    for (int kernel = 1; kernel <= 4; ++kernel)
      for (int stride = 1; stride <= 3; ++stride)
        for (int pad = 0; 2 * pad <= kernel && x + 2 * pad >= kernel; ++pad)
          for (const bool with_pad : {false, true}) {
            const int y = (x + 2 * pad - kernel + stride - 1) / stride + 1;  // ceil
            const WindowAxis a =
                windows_of(pool_of(kFlat, kFlat, {x, y, kernel, stride, pad}, with_pad)).axes[2];
            for (int o = 0; o < y; ++o) {
              int held = 0, first = -1, counted = 0;
              for (int place = o * stride - pad; place < o * stride - pad + kernel; ++place) {
                const bool inside = place >= 0 && place < x;
                if (inside && held++ == 0) first = place;
                counted += with_pad ? place < x + pad : inside;
              }
              const Places places = places_of(a, o);
              EXPECT_EQ(std::max(places.end - places.begin, 0), held);
              EXPECT_TRUE(held == 0 || places.begin == first);
              EXPECT_EQ(count_of(a, o), std::max(counted, 1));
            }
          }
}

TEST(PoolForwardPlan, KernelsByWindow) {
  const auto name = [](const Pool& pool, bool last) {
    return std::string_view(name_of(forward_choice(pool, last).kernel));
  };
  const PoolAxis two{56, 28, 2, 2, 0}, three{56, 28, 3, 2, 1}, whole{7, 1, 7, 7, 0}, frames{8, 8, 1, 1, 0};
  EXPECT_EQ(name(pool_of(kFlat, two, two), false), "columns");
  EXPECT_EQ(name(pool_of(three, three, three), true), "vectors");
  EXPECT_EQ(name(pool_of(kFlat, three, two), false), "columns");
  EXPECT_EQ(name(pool_of(kFlat, whole, whole), false), "columns");
  EXPECT_EQ(name(pool_of(kFlat, whole, {8, 1, 8, 8, 0}), false), "whole");
  EXPECT_EQ(name(pool_of(frames, {15, 1, 15, 15, 0}, {15, 1, 15, 15, 0}), false), "whole");
  EXPECT_EQ(name(pool_of(three, whole, whole), false), "columns");
  EXPECT_EQ(name(pool_of(kFlat, whole, whole), true), "shared");
  EXPECT_EQ(name(pool_of(kFlat, kFlat, {56, 14, 4, 4, 0}), true), "vectors");
  // Channels that are no whole vectors go through shared memory, as planes do.
  Pool odd = pool_of(kFlat, three, three);
  odd.channels = 7;
  EXPECT_EQ(name(odd, true), "columns");
  EXPECT_EQ(name(pool_of(kFlat, {1024, 1, 1024, 1, 0}, {1024, 2, 1023, 1, 0}), false), "any");
}

TEST(PoolForwardPlan, WholePlanes) {
  const PoolAxis whole{7, 1, 7, 7, 0}, frames{8, 8, 1, 1, 0}, padded{7, 1, 9, 9, 1};
  const WholePlanes plain = whole_planes(pool_of(kFlat, whole, whole));
  EXPECT_EQ(plain.planes, 16);
  EXPECT_EQ(plain.places, 49);
  EXPECT_EQ(plain.lanes, 8);
  EXPECT_EQ(plain.scale, 1.0f / 49);
  EXPECT_EQ(whole_planes(pool_of(frames, whole, whole)).planes, 128);
  EXPECT_EQ(whole_planes(pool_of(whole, whole, whole)).places, 343);
  EXPECT_EQ(whole_planes(pool_of(kFlat, padded, padded, true)).scale, 1.0f / 81);
  EXPECT_EQ(whole_planes(pool_of(kFlat, padded, padded, false)).scale, 1.0f / 49);
  EXPECT_EQ(whole_planes(pool_of(kFlat, {56, 1, 56, 56, 0}, {56, 1, 56, 56, 0})).lanes, 256);
}

// Few results of long windows: parts that cover the window, enough blocks, no more loads than there are.
TEST(PoolForwardPlan, LongWindowsAreCutIntoParts) {
  const auto whole = [](int64_t x) { return PoolAxis{x, 1, x, x, 0}; };
  Pool pool = pool_of(whole(58), whole(58), whole(58));
  pool.batch = 1;
  pool.channels = 276;
  const SharedCut wide = shared_cut(pool);
  EXPECT_EQ(wide.lanes, 8);
  EXPECT_EQ(wide.parts.places, 1728);
  EXPECT_EQ(wide.parts.count, 113);  // of 9 blocks
  EXPECT_EQ(forward_sums(pool, ForwardKernel::kShared), 113 * 276);
  EXPECT_EQ(whole_planes(pool).parts.count, 1);  // 276 planes are enough blocks
  EXPECT_EQ(forward_sums(pool, ForwardKernel::kWhole), 0);
  pool.channels = 24;
  const SharedCut narrow = shared_cut(pool);
  EXPECT_EQ(narrow.lanes, 8);
  EXPECT_GE(narrow.parts.count * narrow.parts.places, 58 * 58 * 58);
  EXPECT_LT((narrow.parts.count - 1) * narrow.parts.places, 58 * 58 * 58);
  const WholePlanes planes = whole_planes(pool);
  EXPECT_EQ(planes.parts.places, 5 * 1024);
  EXPECT_EQ(planes.parts.count, 39);
  EXPECT_EQ(forward_sums(pool, ForwardKernel::kWhole), 39 * 24);
  EXPECT_EQ(forward_sums(pool, ForwardKernel::kAny), 0);
  // Short windows, and many results: one launch.
  EXPECT_EQ(forward_sums(pool_of(kFlat, whole(16), whole(16)), ForwardKernel::kShared), 0);
  EXPECT_EQ(forward_sums(pool_of(kFlat, whole(100), whole(300)), ForwardKernel::kWhole), 0);
  pool.batch = 256;
  EXPECT_EQ(forward_sums(pool, ForwardKernel::kShared), 0);
  EXPECT_EQ(forward_sums(pool, ForwardKernel::kWhole), 0);
}

TEST(PoolForwardPlan, VectorsOfChannels) {
  Pool pool = pool_of(kFlat, kFlat, kFlat);
  pool.x.dtype = DType::kF16;
  EXPECT_EQ(forward_vector(pool, true, 16), 8);
  EXPECT_EQ(forward_vector(pool, true, 8), 1);
  EXPECT_EQ(forward_vector(pool, false, 16), 1);
  pool.channels = 12;
  EXPECT_EQ(forward_vector(pool, true, 16), 1);
  pool.x.dtype = DType::kF32;
  EXPECT_EQ(forward_vector(pool, true, 16), 4);
}

}  // namespace
}  // namespace retrograd::kernels::cuda

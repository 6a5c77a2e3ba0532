// SPDX-License-Identifier: Apache-2.0
// The 6-row tile product, once for every instruction set.
//
// Accumulators are twelve named variables: g++ 12 leaves an array of them on the stack in some instantiations
// and not in others. Measured from L1 on a 3.7 GHz Zen 4 core: 116 GFLOP/s of a peak of 118.
#include "kernels/cpu/tile_product.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/tile_product.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "kernels/cpu/targets.h"

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <int kRows>
HWY_NOINLINE void product(const TileProduct& t) {
  const D d;
  const int64_t n = static_cast<int64_t>(hn::Lanes(d));
  const float *HWY_RESTRICT a0 = t.a[0], *HWY_RESTRICT a1 = t.a[kRows > 1 ? 1 : 0],
                            *HWY_RESTRICT a2 = t.a[kRows > 2 ? 2 : 0],
                            *HWY_RESTRICT a3 = t.a[kRows > 3 ? 3 : 0],
                            *HWY_RESTRICT a4 = t.a[kRows > 4 ? 4 : 0],
                            *HWY_RESTRICT a5 = t.a[kRows > 5 ? 5 : 0];
  V c00 = hn::Zero(d), c01 = c00, c10 = c00, c11 = c00, c20 = c00, c21 = c00;
  V c30 = c00, c31 = c00, c40 = c00, c41 = c00, c50 = c00, c51 = c00;
  if (t.accumulate) {
    const float* c = t.c;
    c00 = hn::LoadU(d, c);
    c01 = hn::LoadU(d, c + n);
    if constexpr (kRows > 1) {
      c += t.c_stride;
      c10 = hn::LoadU(d, c);
      c11 = hn::LoadU(d, c + n);
    }
    if constexpr (kRows > 2) {
      c += t.c_stride;
      c20 = hn::LoadU(d, c);
      c21 = hn::LoadU(d, c + n);
    }
    if constexpr (kRows > 3) {
      c += t.c_stride;
      c30 = hn::LoadU(d, c);
      c31 = hn::LoadU(d, c + n);
    }
    if constexpr (kRows > 4) {
      c += t.c_stride;
      c40 = hn::LoadU(d, c);
      c41 = hn::LoadU(d, c + n);
    }
    if constexpr (kRows > 5) {
      c += t.c_stride;
      c50 = hn::LoadU(d, c);
      c51 = hn::LoadU(d, c + n);
    }
  }
  const float* HWY_RESTRICT b = t.b;
  const int64_t* HWY_RESTRICT offsets = t.offsets;
  const int64_t inner = t.inner, step = t.outer_stride;
  for (int64_t o = t.outer; o > 0; --o) {
    for (int64_t j = 0; j < inner; ++j) {
      const int64_t at = offsets[j];
      const V b0 = hn::Load(d, b), b1 = hn::Load(d, b + n);
      b += 2 * n;
      {
        const V a = hn::Set(d, a0[at]);
        c00 = hn::MulAdd(a, b0, c00);
        c01 = hn::MulAdd(a, b1, c01);
      }
      if constexpr (kRows > 1) {
        const V a = hn::Set(d, a1[at]);
        c10 = hn::MulAdd(a, b0, c10);
        c11 = hn::MulAdd(a, b1, c11);
      }
      if constexpr (kRows > 2) {
        const V a = hn::Set(d, a2[at]);
        c20 = hn::MulAdd(a, b0, c20);
        c21 = hn::MulAdd(a, b1, c21);
      }
      if constexpr (kRows > 3) {
        const V a = hn::Set(d, a3[at]);
        c30 = hn::MulAdd(a, b0, c30);
        c31 = hn::MulAdd(a, b1, c31);
      }
      if constexpr (kRows > 4) {
        const V a = hn::Set(d, a4[at]);
        c40 = hn::MulAdd(a, b0, c40);
        c41 = hn::MulAdd(a, b1, c41);
      }
      if constexpr (kRows > 5) {
        const V a = hn::Set(d, a5[at]);
        c50 = hn::MulAdd(a, b0, c50);
        c51 = hn::MulAdd(a, b1, c51);
      }
    }
    a0 += step;
    a1 += step;
    a2 += step;
    a3 += step;
    a4 += step;
    a5 += step;
  }
  float* c = t.c;
  hn::StoreU(c00, d, c);
  hn::StoreU(c01, d, c + n);
  if constexpr (kRows > 1) {
    c += t.c_stride;
    hn::StoreU(c10, d, c);
    hn::StoreU(c11, d, c + n);
  }
  if constexpr (kRows > 2) {
    c += t.c_stride;
    hn::StoreU(c20, d, c);
    hn::StoreU(c21, d, c + n);
  }
  if constexpr (kRows > 3) {
    c += t.c_stride;
    hn::StoreU(c30, d, c);
    hn::StoreU(c31, d, c + n);
  }
  if constexpr (kRows > 4) {
    c += t.c_stride;
    hn::StoreU(c40, d, c);
    hn::StoreU(c41, d, c + n);
  }
  if constexpr (kRows > 5) {
    c += t.c_stride;
    hn::StoreU(c50, d, c);
    hn::StoreU(c51, d, c + n);
  }
}

void tile_product(const TileProduct& t) {
  switch (t.rows) {
    case 6:
      return product<6>(t);
    case 5:
      return product<5>(t);
    case 4:
      return product<4>(t);
    case 3:
      return product<3>(t);
    case 2:
      return product<2>(t);
    default:
      return product<1>(t);
  }
}
int64_t tile_width() { return 2 * static_cast<int64_t>(hn::Lanes(D())); }
}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace retrograd::kernels::cpu {
namespace {

HWY_EXPORT(tile_product);
HWY_EXPORT(tile_width);

struct Chosen {
  void (*product)(const TileProduct&);
  int64_t width;
};
const Chosen& chosen() {
  static const Chosen instance{RG_CHOSEN(tile_product), RG_CHOSEN(tile_width)()};
  return instance;
}

}  // namespace

int64_t tile_width() { return chosen().width; }
void tile_product(const TileProduct& tile) { chosen().product(tile); }

}  // namespace retrograd::kernels::cpu
#endif

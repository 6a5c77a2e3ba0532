// SPDX-License-Identifier: Apache-2.0
// Results straight from FP32 rows of grad_output that are all divided by the same number: quotients and sums
// along a row never leave the registers. Lanes are shifted instead of read again, for a vector from any place
// costs two loads.
//
// Included once for every instruction set.
#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "kernels/cpu/elements-inl.h"
#include "kernels/cpu/pooling/pool_divide-inl.h"
#include "kernels/cpu/pooling/row_pool.h"
#include "kernels/cpu/unroll-inl.h"

#if defined(RETROGRAD_KERNELS_CPU_POOL_FUSED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef RETROGRAD_KERNELS_CPU_POOL_FUSED_INL_H_
#undef RETROGRAD_KERNELS_CPU_POOL_FUSED_INL_H_
#else
#define RETROGRAD_KERNELS_CPU_POOL_FUSED_INL_H_
#endif

HWY_BEFORE_NAMESPACE();
namespace retrograd::kernels::cpu {
namespace HWY_NAMESPACE {

// Some lanes of every vector are lost, and loads must be able to leave lanes out.
#if RG_HAS_MASKED_LOADS
inline constexpr bool kFusesPooling = true;
static_assert(kLanes >= 8 && kMasksBytes <= 4);
using Lanes = Floats<kLanes>;
using Numbers = hn::Vec<Lanes>;
using LaneMask = hn::Mask<Lanes>;

// Lanes of a vector that starts at `first` that lie in [0, end).
HWY_INLINE LaneMask lanes_inside(int64_t first, int64_t end) {
  const auto below = [](int64_t count) {
    return hn::FirstN(Lanes(), static_cast<size_t>(std::clamp<int64_t>(count, 0, kLanes)));
  };
  return hn::AndNot(below(-first), below(end - first));
}
// Lane l takes lane l + by.
HWY_INLINE auto lanes_from(int64_t by) {
  HWY_ALIGN std::array<int32_t, kLanes> lanes;
  for (int64_t l = 0; l < kLanes; ++l)
    lanes[static_cast<size_t>(l)] = static_cast<int32_t>((l + by) & (kLanes - 1));
  return hn::SetTableIndices(Lanes(), lanes.data());
}

// The first `count` lanes, in two pieces that overlap: a masked store takes tens of cycles on some machines.
class StoreFirst {
 public:
  HWY_INLINE explicit StoreFirst(int64_t count)
      : count_(std::clamp<int64_t>(count, 0, kLanes)), last_(lanes_from(count_ - piece())) {}
  HWY_INLINE void operator()(Numbers numbers, float* at) const {
    if (count_ == kLanes) return hn::StoreU(numbers, Lanes(), at);
    if constexpr (kLanes > 8) {
      if (count_ >= 8) return put(Floats<8>(), numbers, at);
    }
    if (count_ >= 4) return put(Floats<4>(), numbers, at);
    if (count_ >= 2) return put(Floats<2>(), numbers, at);
    if (count_ == 1) *at = hn::GetLane(numbers);
  }

 private:
  int64_t piece() const { return count_ >= 8 ? 8 : count_ >= 4 ? 4 : count_ >= 2 ? 2 : count_; }
  template <class D>
  HWY_INLINE void put(D d, Numbers numbers, float* at) const {
    store(first_lanes(d, numbers), d, at);
    store(first_lanes(d, hn::TableLookupLanes(numbers, last_)), d, at + count_ - piece());
  }
  template <class D, class V>
  HWY_INLINE static hn::Vec<D> first_lanes(D d, V numbers) {
    if constexpr (hn::MaxLanes(hn::DFromV<V>()) == hn::MaxLanes(d)) {
      return numbers;
    } else {
      return first_lanes(d, hn::LowerHalf(numbers));
    }
  }
  int64_t count_;
  decltype(lanes_from(0)) last_;
};

// Some volumes, and a plane of results with the planes of windows it lies in.
struct FusedVolumes {
  const PoolVolumes& p;
  int64_t count;
  const float* in;
  float* out;
  struct Plane {
    int64_t windows;
    const float* in;
    float* out;
  };
  int64_t planes() const { return count * p.depths; }
  HWY_INLINE Plane plane(int64_t index) const {
    const int64_t volume = p.depths == 1 ? index : index / p.depths, d = index - volume * p.depths;
    const PoolWindows& depth = p.over_depth[d];
    return {depth.end - depth.begin, in + volume * p.in.volume + depth.begin * p.in.depth,
            out + volume * p.out.volume + d * p.out.depth};
  }
};
// The same place of some planes, at least one.
template <class Divide>
struct FlatQuotients {
  Divide divide;
  HWY_INLINE Numbers at(LaneMask mask, const float* from, int64_t) const {
    return divide(Lanes(), hn::MaskedLoad(mask, Lanes(), from));
  }
};
template <class Divide>
struct DeepQuotients {
  Divide divide;
  int64_t plane;  // floats from one to the next
  HWY_INLINE Numbers at(LaneMask mask, const float* from, int64_t planes) const {
    const Lanes d;
    auto sum = divide(d, hn::MaskedLoad(mask, d, from));
    for (int64_t z = 1; z < planes; ++z)
      sum = hn::Add(sum, divide(d, hn::MaskedLoad(mask, d, from + z * plane)));
    return sum;
  }
};

// Windows of 3 × 3 at every place: kStrips vectors of results, kLanes − 2 places each, down all rows. What a
// vector holds too much is written over by the next one; the last two of a row are cut.
template <int kStrips, class Quotients>
HWY_NOINLINE void put_threes(const FusedVolumes& volumes, Quotients quotients, int64_t place) {
  constexpr int64_t kStep = kLanes - 2;
  const PoolVolumes& p = volumes.p;
  const auto second = lanes_from(1), third = lanes_from(2);
  const int64_t window = place + p.pad - 2;
  const int64_t left = p.x - place - (kStrips - 1) * kStep;
  const StoreFirst put_next(left + kStep), put_last(left);
  LaneMask inside[kStrips];
  each(Indices<kStrips>(), [&](auto s) HWY_ATTR { inside[s()] = lanes_inside(window + s() * kStep, p.y); });
  // The first two rows of windows end no row of results.
  const int64_t first_row = p.first_row, rows = p.rows + 2, row_windows = p.row_windows;
  const int64_t in_row = p.in.row, out_row = p.out.row;
  for (int64_t index = 0; index < volumes.planes(); ++index) {
    const FusedVolumes::Plane plane = volumes.plane(index);
    const float* in = plane.in + window + first_row * in_row;
    float* out = plane.out + place - 2 * out_row;
    Numbers before[kStrips], last[kStrips];
    each(Indices<kStrips>(), [&](auto s) HWY_ATTR { before[s()] = last[s()] = hn::Zero(Lanes()); });
    // Rows in the middle ask for nothing.
    const auto add_row = [&](auto middle, bool any, bool ends) HWY_ATTR {
      each(Indices<kStrips>(), [&](auto s) HWY_ATTR {
        auto now = hn::Zero(Lanes());
        if (middle() || any) {
          const auto q = quotients.at(inside[s()], in + s() * kStep, plane.windows);
          now = hn::Add(hn::Add(q, hn::TableLookupLanes(q, second)), hn::TableLookupLanes(q, third));
        }
        if (middle() || ends) {
          const auto sum = hn::Add(hn::Add(before[s()], last[s()]), now);
          if constexpr (s() + 2 < kStrips) {
            hn::StoreU(sum, Lanes(), out + s() * kStep);
          } else {
            (s() + 1 < kStrips ? put_next : put_last)(sum, out + s() * kStep);
          }
        }
        before[s()] = last[s()];
        last[s()] = now;
      });
    };
    for (int64_t row = 0; row < rows; ++row, in += in_row, out += out_row) {
      const int64_t at = first_row + row;
      const bool any = at >= 0 && at < row_windows && plane.windows > 0;
      if (any && row >= 2) {
        add_row(std::true_type(), true, true);
      } else {
        add_row(std::false_type(), any, row >= 2);
      }
    }
  }
}

// Lanes so that weaving two vectors, which is done within blocks of four, makes the next places of both.
HWY_INLINE auto woven_lanes(int by) {
  HWY_ALIGN std::array<int32_t, kLanes> lanes;
  for (int l = 0; l < kLanes; ++l)
    lanes[static_cast<size_t>(l)] = (l / 4 * 2 + l % 2 + (l % 4 < 2 ? 0 : kLanes / 2) + by) & (kLanes - 1);
  return hn::SetTableIndices(Lanes(), lanes.data());
}

// Windows of 3 × 3 at every other place, from −1 on: place 2·j lies in window j, 2·j + 1 in j and j + 1, and
// rows likewise. A strip is kLanes − 1 windows.
template <int kStrips, class Quotients>
HWY_NOINLINE void put_woven(const FusedVolumes& volumes, Quotients quotients, int64_t place) {
  constexpr int64_t kWindows = kLanes - 1, kStep = 2 * kWindows;
  const Lanes d;
  const PoolVolumes& p = volumes.p;
  const auto even = woven_lanes(0), odd = woven_lanes(1);
  const int64_t left = p.x - place - (kStrips - 1) * kStep;
  const StoreFirst put_next(left + kStep - kLanes), put_first(left), put_last(left - kLanes);
  LaneMask inside[kStrips];
  each(Indices<kStrips>(),
       [&](auto s) HWY_ATTR { inside[s()] = lanes_inside(place / 2 + s() * kWindows, p.y); });
  const auto put = [&](auto s, Numbers evens, Numbers odds, float* to) HWY_ATTR {
    const auto first = hn::InterleaveLower(d, evens, odds), second = hn::InterleaveUpper(d, evens, odds);
    if constexpr (s() + 1 < kStrips) {
      hn::StoreU(first, d, to + s() * kStep);
      if constexpr (s() + 2 < kStrips) {
        hn::StoreU(second, d, to + s() * kStep + kLanes);
      } else {
        put_next(second, to + s() * kStep + kLanes);
      }
    } else {
      put_first(first, to + s() * kStep);
      put_last(second, to + s() * kStep + kLanes);
    }
  };
  const int64_t first_row = p.first_row, rows = p.rows, row_windows = p.row_windows;
  const int64_t in_row = p.in.row, out_row = p.out.row;
  for (int64_t index = 0; index < volumes.planes(); ++index) {
    const FusedVolumes::Plane plane = volumes.plane(index);
    const float* in = plane.in + place / 2 + first_row * in_row;
    float* out = plane.out + place;
    Numbers above_even[kStrips], above_odd[kStrips];
    each(Indices<kStrips>(), [&](auto s) HWY_ATTR { above_even[s()] = above_odd[s()] = hn::Zero(d); });
    // Row 2·i − 1 lies in the windows before and in these, row 2·i in these.
    for (int64_t row = 0; row <= rows; row += 2, in += in_row, out += 2 * out_row) {
      const int64_t at = first_row + row / 2;
      const bool any = at >= 0 && at < row_windows && plane.windows > 0;
      each(Indices<kStrips>(), [&](auto s) HWY_ATTR {
        auto evens = hn::Zero(d), odds = evens;
        if (any) {
          const auto q = quotients.at(inside[s()], in + s() * kWindows, plane.windows);
          evens = hn::TableLookupLanes(q, even);
          odds = hn::Add(evens, hn::TableLookupLanes(q, odd));
        }
        if (row > 0) put(s, hn::Add(above_even[s()], evens), hn::Add(above_odd[s()], odds), out - out_row);
        if (row < rows) put(s, evens, odds, out);
        above_even[s()] = evens;
        above_odd[s()] = odds;
      });
    }
  }
}

// A stream of vectors, `by` places later.
class Shift {
 public:
  HWY_INLINE explicit Shift(int64_t by)
      : lanes_(lanes_from(-by)), first_(lanes_inside(0, by)), before_(hn::Zero(Lanes())) {}
  HWY_INLINE Numbers operator()(Numbers now) {
    const auto turned = hn::TableLookupLanes(now, lanes_);
    const auto shifted = hn::IfThenElse(first_, before_, turned);
    before_ = turned;
    return shifted;
  }

 private:
  decltype(lanes_from(0)) lanes_;
  LaneMask first_;
  Numbers before_;
};

// One row, windows of kWhole · kLanes + rest at every place: sums of 1, 2, 4, … places by doubling, and of
// any number from those.
template <int kWhole, class Divide>
HWY_NOINLINE void put_long(const FusedVolumes& volumes, Divide divide) {
  const Lanes d;
  const PoolVolumes& p = volumes.p;
  constexpr int kLevels = kLanes == 16 ? 4 : 3;
  const int64_t rest = p.kernel % kLanes, places = p.x, windows = p.y, pad = p.pad;
  const StoreFirst put_last(places % kLanes);
  // Of the rest, the greatest first: each lies behind those before it.
  const Shift behind_of[3] = {Shift(rest & -2), Shift(rest & -4), Shift(rest & -8)};
  const Shift doubling_of[4] = {Shift(1), Shift(2), Shift(4), Shift(kLanes / 2)};
  for (int64_t index = 0; index < volumes.planes(); ++index) {
    const FusedVolumes::Plane plane = volumes.plane(index);
    const float* in = plane.in;
    float* out = plane.out;
    Shift behind[4] = {behind_of[0], behind_of[1], behind_of[2], doubling_of[3]};
    Shift doubling[4] = {doubling_of[0], doubling_of[1], doubling_of[2], doubling_of[3]};
    Numbers wholes[kWhole + 1], rests[kWhole + 1];
    each(Indices<kWhole + 1>(), [&](auto i) HWY_ATTR { wholes[i()] = rests[i()] = hn::Zero(d); });
    for (int64_t place = -((pad + kLanes - 1) / kLanes * kLanes); place < places; place += kLanes) {
      const int64_t window = place + pad;
      const bool whole = window >= 0 && window + kLanes <= windows;
      const auto read =
          whole ? hn::LoadU(d, in + window) : hn::MaskedLoad(lanes_inside(window, windows), d, in + window);
      auto sum = divide(d, read), tail = hn::Zero(d);
      each(Indices<kLevels>(), [&](auto level) HWY_ATTR {
        const int64_t more = rest >> level();
        if ((more & 1) != 0) tail = hn::Add(more == 1 ? sum : behind[level()](sum), tail);
        sum = hn::Add(sum, doubling[level() == kLevels - 1 ? 3 : level()](sum));
      });
      auto total = tail;
      if constexpr (kWhole > 0) {
        total = hn::Add(rests[kWhole - 1], sum);
        each(Indices<kWhole - 1>(), [&](auto i) HWY_ATTR { total = hn::Add(total, wholes[i()]); });
        each(Indices<kWhole - 1>(), [&](auto i) HWY_ATTR {
          wholes[kWhole - 1 - i()] = wholes[kWhole - 2 - i()];
          rests[kWhole - 1 - i()] = rests[kWhole - 2 - i()];
        });
        wholes[0] = sum;
        rests[0] = tail;
      }
      if (place < 0) continue;
      if (places - place >= kLanes) {
        hn::StoreU(total, d, out + place);
      } else {
        put_last(total, out + place);
      }
    }
  }
}

// Rows of results in blocks of up to four strips of `step` places.
template <class Put>
HWY_INLINE void in_strips(int64_t places, int64_t step, const Put& put) {
  for (int64_t place = 0; place < places; place += 4 * step) {
    const int64_t strips = (places - place + step - 1) / step;
    if (strips >= 4) {
      put(std::integral_constant<int, 4>(), place);
    } else if (strips == 3) {
      put(std::integral_constant<int, 3>(), place);
    } else if (strips == 2) {
      put(std::integral_constant<int, 2>(), place);
    } else {
      put(std::integral_constant<int, 1>(), place);
    }
  }
}
template <class Quotients>
HWY_INLINE void put_strips(const FusedVolumes& volumes, Quotients quotients) {
  const PoolVolumes& p = volumes.p;
  if (p.way == PoolWay::kThrees) {
    in_strips(p.x, kLanes - 2,
              [&](auto strips, int64_t place) { put_threes<strips()>(volumes, quotients, place); });
  } else {
    in_strips(p.x, 2 * (kLanes - 1),
              [&](auto strips, int64_t place) { put_woven<strips()>(volumes, quotients, place); });
  }
}
template <class Divide>
HWY_INLINE void put_long_rows(const FusedVolumes& volumes, Divide divide) {
  const int64_t whole = volumes.p.kernel / kLanes;
  if (whole == 0) return put_long<0>(volumes, divide);
  if (whole == 1) return put_long<1>(volumes, divide);
  if (whole == 2) return put_long<2>(volumes, divide);
  put_long<3>(volumes, divide);
}

void fuse_rows(const PoolVolumes& p, const std::byte* in, std::byte* out, int64_t count) {
  const FusedVolumes volumes{p, count, reinterpret_cast<const float*>(in), reinterpret_cast<float*>(out)};
  with_divide<Elements<DType::kF32>>(p.depth_counts.all * p.row_counts.all * p.counts.all, [&](auto divide) {
    if (p.way == PoolWay::kLong) return put_long_rows(volumes, divide);
    if (p.depth_windows > 1) return put_strips(volumes, DeepQuotients<decltype(divide)>{divide, p.in.depth});
    put_strips(volumes, FlatQuotients<decltype(divide)>{divide});
  });
}

#else
inline constexpr bool kFusesPooling = false;
void fuse_rows(const PoolVolumes&, const std::byte*, std::byte*, int64_t) {}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace retrograd::kernels::cpu
HWY_AFTER_NAMESPACE();

#endif

// SPDX-License-Identifier: Apache-2.0
// Packing weights of one tap.
#include "engines/cpu/dense/pointwise_weights.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/layout/row_copy.h"
#include "kernels/cpu/layout/transpose.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kTilesAtOnce = 16, kChannelsAtOnce = 128;  // whose weights are packed together

}  // namespace

PointwiseWeights::PointwiseWeights(const problem::ConvPass& pass, int64_t tile_rows)
    : pass_(pass),
      tile_rows_(tile_rows),
      m_(result_channels(pass)),
      k_(source_channels(pass)),
      tiles_(ceil_div(m_, tile_rows)) {}

int64_t PointwiseWeights::tasks() const {
  return pass_.groups * ceil_div(tiles_, kTilesAtOnce) * ceil_div(k_, kChannelsAtOnce);
}

int64_t PointwiseWeights::scratch_floats() const { return kTilesAtOnce * tile_rows_ * kChannelsAtOnce; }

void PointwiseWeights::pack(const Bindings& bindings, int64_t task, float* rows, float* weights) const {
  const auto& s = pass_.w.strides;
  const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
  const int64_t m_stride = is_forward(pass_) ? s[0] : s[1], k_stride = is_forward(pass_) ? s[1] : s[0];
  const int64_t packs = ceil_div(tiles_, kTilesAtOnce),
                packs_of_group = packs * ceil_div(k_, kChannelsAtOnce);
  const int64_t group = task / packs_of_group, pack = task % packs_of_group;
  const int64_t tile = pack % packs * kTilesAtOnce, k_first = pack / packs * kChannelsAtOnce;
  const int64_t m = tile * tile_rows_, count = std::min(kTilesAtOnce * tile_rows_, m_ - m);
  const int64_t channels = std::min(kChannelsAtOnce, k_ - k_first);
  const std::byte* from =
      static_cast<const std::byte*>(bindings[pass_.w.operand]) +
      (group * pass_.y_channels_per_group() * s[0] + m * m_stride + k_first * k_stride) * bytes;
  float* out = weights + ((group * tiles_ + tile) * k_ + k_first) * tile_rows_;
  if (k_stride == 1 && m_stride != 1) {
    for (int64_t i = 0; i < count; ++i)
      load_row(pass_.w.dtype, pass_.rounding, from + i * m_stride * bytes, 1, channels, rows + i * channels);
    for (int64_t i = 0; i < count; i += tile_rows_)
      kernels::cpu::transpose(rows + i * channels, channels, out + i * k_, tile_rows_,
                              std::min(tile_rows_, count - i), channels);
    return;
  }
  const bool plain = is_plain(pass_.w, pass_.rounding) && m_stride == 1;
  const auto part = [&](const float* in, int64_t in_stride, float* to, int64_t k_count) {
    for (int64_t i = 0; i < count; i += tile_rows_)
      kernels::cpu::copy_rows(in + i, in_stride, to + i * k_, tile_rows_, k_count,
                              std::min(tile_rows_, count - i));
  };
  if (plain) return part(reinterpret_cast<const float*>(from), k_stride, out, channels);
  for (int64_t k = 0; k < channels; ++k) {
    load_row(pass_.w.dtype, pass_.rounding, from + k * k_stride * bytes, m_stride, count, rows);
    part(rows, 0, out + k * tile_rows_, 1);
  }
}

}  // namespace retrograd::engines::cpu

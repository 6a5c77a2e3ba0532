// SPDX-License-Identifier: Apache-2.0
// Index arithmetic of the parts: strips in and out, the 36 products in between.
#include "engines/cpu/winograd/winograd_gather_parts.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/winograd/winograd_strips.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/float_at.h"
#include "kernels/cpu/layout/transpose.h"
#include "kernels/cpu/winograd/winograd.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::kWinogradPoints;
using problem::ConvPass;
using problem::PassTensor;
using problem::Window;

constexpr int64_t kKernelsAtOnce = 16;  // weights turned over at once, in L1

int64_t result_size(const ConvPass& p, const Window& w) { return is_forward(p) ? w.y : w.x; }
int64_t source_size(const ConvPass& p, const Window& w) { return is_forward(p) ? w.x : w.y; }
// Place in the source of the first tap of result 0.
int64_t source_offset(const ConvPass& p, const Window& w) { return is_forward(p) ? -w.pad_lo : w.pad_lo - 2; }

}  // namespace

WinogradGatherParts::WinogradGatherParts(const ConvPass& pass, const VectorShape& vectors)
    : pass_(pass),
      width_(vectors.tile_width()),
      lanes_(vectors.winograd_lanes()),
      cut_(cut_winograd_gather(pass, width_)),
      iota_(static_cast<size_t>(source_channels(pass))),
      m_blocks_(ceil_div(result_channels(pass), width_)),
      k_padded_(ceil_div(source_channels(pass), lanes_) * lanes_) {
  std::iota(iota_.begin(), iota_.end(), 0);
  // One vector more between points: powers of two would put all 36 into one set of a cache.
  data_tile_ = static_cast<int64_t>(cut_.depth.taps.size()) * k_padded_;
  data_point_ = cut_.block_tiles() * data_tile_ + lanes_;
  product_point_ = cut_.block_tiles() * width_ + lanes_;
}

int64_t WinogradGatherParts::data_floats() const { return kWinogradPoints * data_point_; }
int64_t WinogradGatherParts::product_floats() const { return kWinogradPoints * product_point_; }
int64_t WinogradGatherParts::kernel_floats(int64_t terms) const {
  return kWinogradPoints * (terms * width_ + lanes_);
}
int64_t WinogradGatherParts::strip_floats() const {
  return std::max((4 * cut_.rows + 2) * (4 * cut_.columns + 2) * lanes_, kKernelsAtOnce * 9 * width_);
}

WinogradBlock WinogradGatherParts::block(int64_t index) const {
  WinogradBlock b;
  const auto cut = [&](int64_t blocks, int64_t size, int64_t total, int64_t& first, int64_t& count) {
    first = index % blocks * size;
    count = std::min(size, total - first);
    index /= blocks;
  };
  cut(cut_.blocks_w, cut_.columns, cut_.tiles_w, b.first_column, b.columns);
  cut(cut_.blocks_h, cut_.rows, cut_.tiles_h, b.first_row, b.rows);
  cut(cut_.blocks_p, cut_.block_planes, cut_.planes, b.first_plane, b.planes);
  b.group = index;
  const auto& taps = cut_.depth.taps;
  b.taps = static_cast<int64_t>(taps.size());
  if (b.planes > 1) return b;
  const auto inside = [&](const PhaseTap& tap) {
    const int64_t place = b.first_plane % cut_.depth.count * cut_.depth.source_step + tap.offset;
    return place >= 0 && place < cut_.depth.source_size;
  };
  const auto begin = std::find_if(taps.begin(), taps.end(), inside);
  b.first_tap = begin - taps.begin();
  b.taps = std::find_if_not(begin, taps.end(), inside) - begin;
  return b;
}

void WinogradGatherParts::transform_data(const Bindings& bindings, const WinogradBlock& b, int64_t channel,
                                         float* strip, float* data) const {
  const PassTensor& source = source_of(pass_);
  const auto& s = source.strides;
  const Window &h = pass_.axes[1], &w = pass_.axes[2];
  LaneStrip shape{.lanes = lanes_,
                  .channels = std::min(lanes_, source_channels(pass_) - channel),
                  .first_row = 4 * b.first_row + source_offset(pass_, h),
                  .rows = 4 * b.rows + 2,
                  .first_column = 4 * b.first_column + source_offset(pass_, w),
                  .columns = 4 * b.columns + 2,
                  .width = source_size(pass_, w)};
  const int64_t row_floats = shape.columns * lanes_;
  for (int64_t tap = 0; tap < b.taps; ++tap)
    for (int64_t p = 0; p < b.planes; ++p) {
      const int64_t plane = b.first_plane + p;
      const int64_t place = plane % cut_.depth.count * cut_.depth.source_step +
                            cut_.depth.taps[static_cast<size_t>(b.first_tap + tap)].offset;
      const bool outside = place < 0 || place >= cut_.depth.source_size;
      shape.height = outside ? 0 : source_size(pass_, h);
      const int64_t at = plane / cut_.depth.count * s[0] +
                         (b.group * source_channels(pass_) + channel) * s[1] + (outside ? 0 : place * s[2]);
      load_lanes(shape, static_cast<const float*>(bindings[source.operand]) + at, s, strip);
      for (int64_t row = 0; row < b.rows; ++row)
        kernels::cpu::winograd_data(
            {.in = strip + 4 * row * row_floats,
             .in_row = row_floats,
             .in_column = lanes_,
             .in_tile = 4 * lanes_,
             .out = data + (p * b.rows + row) * b.columns * data_tile_ + tap * k_padded_ + channel,
             .out_row = 6 * data_point_,
             .out_column = data_point_,
             .out_tile = data_tile_,
             .tiles = b.columns});
    }
}

void WinogradGatherParts::transform_weights(const Bindings& bindings, int64_t group, int64_t m_block,
                                            int64_t depth_tap, int64_t channel, int64_t count, float* strip,
                                            float* kernels, int64_t terms, int64_t first_term) const {
  const auto& s = pass_.w.strides;
  const bool forward = is_forward(pass_);
  const int64_t m_stride = forward ? s[0] : s[1], k_stride = forward ? s[1] : s[0];
  const int64_t m = m_block * width_, channels = std::min(width_, result_channels(pass_) - m);
  const auto* weight = static_cast<const float*>(bindings[pass_.w.operand]) +
                       group * pass_.y_channels_per_group() * s[0] + m * m_stride + channel * k_stride +
                       cut_.depth.taps[static_cast<size_t>(depth_tap)].tap * s[2];
  // grad_input reads the taps backwards.
  const int64_t way = forward ? 1 : -1, point = terms * width_ + lanes_;
  for (int64_t first = 0; first < count; first += kKernelsAtOnce) {
    const int64_t now = std::min(kKernelsAtOnce, count - first);
    if (channels < width_) std::fill_n(strip, now * 9 * width_, 0.0F);
    for (int64_t i = 0; i < now; ++i)
      load_taps(weight + (first + i) * k_stride, m_stride, channels, strip + i * 9 * width_);
    for (int64_t half = 0; half < width_; half += lanes_)
      kernels::cpu::winograd_kernel({.in = strip + (forward ? 0 : 8 * width_) + half,
                                     .in_row = way * 3 * width_,
                                     .in_column = way * width_,
                                     .in_tile = 9 * width_,
                                     .out = kernels + (first_term + first) * width_ + half,
                                     .out_row = 6 * point,
                                     .out_column = point,
                                     .out_tile = width_,
                                     .tiles = now});
  }
}

void WinogradGatherParts::load_taps(const float* weight, int64_t m_stride, int64_t channels,
                                    float* taps) const {
  const auto& s = pass_.w.strides;
  if (s[4] == 1 && s[3] == 3) return kernels::cpu::transpose(weight, m_stride, taps, width_, channels, 9);
  for (int64_t h = 0; h < 3; ++h)
    for (int64_t w = 0; w < 3; ++w)
      for (int64_t m = 0; m < channels; ++m)
        taps[(h * 3 + w) * width_ + m] = kernels::cpu::float_at(weight + m * m_stride + h * s[3] + w * s[4]);
}

void WinogradGatherParts::multiply(const WinogradBlock& b, const WinogradTerms& terms, const float* data,
                                   const float* kernels, int64_t kernel_terms, bool accumulate,
                                   float* products) const {
  kernels::cpu::TileProduct product;
  product.offsets = iota_.data();
  product.inner = terms.channels;
  product.outer = terms.taps;
  product.outer_stride = k_padded_;
  product.c_stride = width_;
  product.accumulate = accumulate;
  const float* first = data + terms.first_tap * k_padded_ + terms.first_channel;
  for (int64_t point = 0; point < kWinogradPoints; ++point) {
    product.b = kernels + point * (kernel_terms * width_ + lanes_);
    for (int64_t t = 0; t < b.tiles(); t += kernels::cpu::kTileRows) {
      product.rows = static_cast<int>(std::min<int64_t>(kernels::cpu::kTileRows, b.tiles() - t));
      for (int row = 0; row < product.rows; ++row)
        product.a[row] = first + point * data_point_ + (t + row) * data_tile_;
      product.c = products + point * product_point_ + t * width_;
      kernels::cpu::tile_product(product);
    }
  }
}

void WinogradGatherParts::store_result(const Bindings& bindings, const WinogradBlock& b, int64_t m_block,
                                       const float* products, float* strip) const {
  const PassTensor& result = pass_.result();
  const auto& s = result.strides;
  const int64_t height = result_size(pass_, pass_.axes[1]), width = result_size(pass_, pass_.axes[2]);
  LaneStrip shape{.lanes = lanes_,
                  .first_row = 4 * b.first_row,
                  .rows = std::min(4 * b.rows, height - 4 * b.first_row),
                  .first_column = 4 * b.first_column,
                  .columns = std::min(4 * b.columns, width - 4 * b.first_column),
                  .height = height,
                  .width = width};
  const int64_t row_floats = shape.columns * lanes_;
  for (int64_t half = 0; half < width_; half += lanes_) {
    const int64_t channel = m_block * width_ + half;
    if (channel >= result_channels(pass_)) break;
    shape.channels = std::min(lanes_, result_channels(pass_) - channel);
    for (int64_t p = 0; p < b.planes; ++p) {
      for (int64_t row = 0; row < b.rows; ++row)
        kernels::cpu::winograd_result({.in = products + (p * b.rows + row) * b.columns * width_ + half,
                                       .in_row = 6 * product_point_,
                                       .in_column = product_point_,
                                       .in_tile = width_,
                                       .out = strip + 4 * row * row_floats,
                                       .out_row = row_floats,
                                       .out_column = lanes_,
                                       .out_tile = 4 * lanes_,
                                       .tiles = b.columns},
                                      shape.columns - 4 * (b.columns - 1));
      const int64_t plane = b.first_plane + p;
      const int64_t at = plane / cut_.depth.count * s[0] +
                         (b.group * result_channels(pass_) + channel) * s[1] +
                         plane % cut_.depth.count * s[2];
      store_lanes(shape, strip, s, static_cast<float*>(bindings[result.operand]) + at);
    }
  }
}

}  // namespace retrograd::engines::cpu

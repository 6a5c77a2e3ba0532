// SPDX-License-Identifier: Apache-2.0
// result[q] = Σ_k Σ_s source[k, q + offset + s] · g[k, s],  s in 3 × 3; g is the weight, turned over for
// grad_input.
//
// A task is a block of tiles of 4 × 4 results. It transforms the 6 × 6 tiles of all source channels, one
// vector of channels at a time, to data[36][tile][k]; then, for `width` result channels at a time, makes the
// 36 products data[p] · kernels[p] with the tile product of the direct engines, and transforms them back.
// The block's data stay in L2; the transformed weights stream through once a block, at 2/tiles bytes for an
// operation.
#include "engines/cpu/winograd_gather.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/task_slots.h"
#include "engines/cpu/winograd_fit.h"
#include "engines/cpu/winograd_strips.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/transpose.h"
#include "kernels/cpu/winograd.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::kWinogradPoints;
using kernels::cpu::WinogradTiles;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kDataFloatsInL2 = 160 * 1024;
constexpr int64_t kFewestTiles = 12;
constexpr int64_t kWantedTasks = 16;
constexpr int64_t kKernelsAtOnce = 16;                  // weights transformed at once, from L1
constexpr int64_t kMostKernelFloats = 6 * 1024 * 1024;  // transformed weights of a group: they stay in L3

int64_t round_up(int64_t value, int64_t step) { return ceil_div(value, step) * step; }

const problem::Window& height_window(const ConvPass& p) { return p.axes[1]; }
const problem::Window& width_window(const ConvPass& p) { return p.axes[2]; }
int64_t result_size(const ConvPass& p, const problem::Window& w) { return is_forward(p) ? w.y : w.x; }
int64_t source_size(const ConvPass& p, const problem::Window& w) { return is_forward(p) ? w.x : w.y; }
// Place in the source of the first tap of result 0.
int64_t source_offset(const ConvPass& p, const problem::Window& w) {
  return is_forward(p) ? -w.pad_lo : w.pad_lo - 2;
}

class WinogradGatherStep final : public Step {
 public:
  explicit WinogradGatherStep(const ConvPass& pass)
      : pass_(pass),
        width_(kernels::cpu::tile_width()),
        lanes_(kernels::cpu::winograd_lanes()),
        cut_(cut_winograd_gather(pass)),
        slots_(runtime::ThreadPool::instance().threads()),
        iota_(static_cast<size_t>(source_channels(pass))) {
    std::iota(iota_.begin(), iota_.end(), 0);
    const auto depth_taps = static_cast<int64_t>(cut_.depth.taps.size());
    k_padded_ = round_up(source_channels(pass), lanes_);
    m_blocks_ = ceil_div(result_channels(pass), width_);
    tasks_ = pass.groups * cut_.depth.count * cut_.blocks_n * cut_.blocks_h * cut_.blocks_w;
    // One vector more between points: powers of two would put all 36 into one set of a cache.
    kernel_point_ = depth_taps * source_channels(pass) * width_ + lanes_;
    data_tile_ = depth_taps * k_padded_;
    data_point_ = cut_.block_tiles() * data_tile_ + lanes_;
    product_point_ = cut_.block_tiles() * width_ + lanes_;
    kernel_bytes_ = part_bytes<float>(pass.groups * m_blocks_ * kWinogradPoints * kernel_point_);
    data_bytes_ = part_bytes<float>(kWinogradPoints * data_point_);
    product_bytes_ = part_bytes<float>(kWinogradPoints * product_point_);
    const int64_t strip = (4 * cut_.rows + 2) * (4 * cut_.columns + 2) * lanes_;
    slot_bytes_ =
        data_bytes_ + product_bytes_ + part_bytes<float>(std::max(strip, kKernelsAtOnce * 9 * width_));
  }

  size_t workspace_bytes() const override {
    return kernel_bytes_ + static_cast<size_t>(slots_) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* kernels = reinterpret_cast<float*>(workspace);
    std::byte* scratch = workspace + kernel_bytes_;
    const auto scratch_of = [&](int64_t slot) { return scratch + static_cast<size_t>(slot) * slot_bytes_; };
    const int64_t terms = static_cast<int64_t>(cut_.depth.taps.size()) * source_channels(pass_);
    const int64_t pieces = ceil_div(terms, kKernelsAtOnce);
    run_tasks(*context.pool, pass_.groups * m_blocks_ * pieces, slots_, [&](int64_t task, int64_t slot) {
      const int64_t first = task % pieces * kKernelsAtOnce;
      transform_weights(bindings, task / pieces, first, std::min(kKernelsAtOnce, terms - first),
                        reinterpret_cast<float*>(scratch_of(slot)), kernels);
    });
    run_tasks(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      run_block(bindings, block_of(task), kernels, scratch_of(slot));
    });
  }

 private:
  struct Block {
    int64_t group, plane;
    int64_t first_image, images;
    int64_t first_row, rows;  // tiles
    int64_t first_column, columns;
    int64_t first_tap, taps;  // along D, that read inside the source
  };

  Block block_of(int64_t task) const {
    Block b{};
    const auto cut = [&](int64_t blocks, int64_t size, int64_t total, int64_t& first, int64_t& count) {
      first = task % blocks * size;
      count = std::min(size, total - first);
      task /= blocks;
    };
    cut(cut_.blocks_w, cut_.columns, cut_.tiles_w, b.first_column, b.columns);
    cut(cut_.blocks_h, cut_.rows, cut_.tiles_h, b.first_row, b.rows);
    cut(cut_.blocks_n, cut_.images, pass_.batch, b.first_image, b.images);
    b.plane = task % cut_.depth.count;
    b.group = task / cut_.depth.count;
    const auto inside = [&](const PhaseTap& tap) {
      const int64_t place = b.plane * cut_.depth.source_step + tap.offset;
      return place >= 0 && place < cut_.depth.source_size;
    };
    const auto& taps = cut_.depth.taps;
    const auto begin = std::find_if(taps.begin(), taps.end(), inside);
    b.first_tap = begin - taps.begin();
    b.taps = std::find_if_not(begin, taps.end(), inside) - begin;
    return b;
  }

  // kernels[group][m block][point][depth tap, k][width] of `count` terms of the sum.
  void transform_weights(const Bindings& bindings, int64_t block, int64_t first, int64_t count, float* taps,
                         float* kernels) const {
    const auto& s = pass_.w.strides;
    const int64_t m_stride = is_forward(pass_) ? s[0] : s[1], k_stride = is_forward(pass_) ? s[1] : s[0];
    const int64_t group = block / m_blocks_, m = block % m_blocks_ * width_;
    const int64_t channels = std::min(width_, result_channels(pass_) - m);
    const auto* base = static_cast<const float*>(bindings[pass_.w.operand]) +
                       group * pass_.y_channels_per_group() * s[0] + m * m_stride;
    std::fill_n(taps, count * 9 * width_, 0.0F);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t depth_tap = (first + i) / source_channels(pass_),
                    k = (first + i) % source_channels(pass_);
      load_taps(base + k * k_stride + cut_.depth.taps[static_cast<size_t>(depth_tap)].tap * s[2], m_stride,
                channels, taps + i * 9 * width_);
    }
    // grad_input reads the taps backwards.
    const int64_t way = is_forward(pass_) ? 1 : -1;
    for (int64_t half = 0; half < width_; half += lanes_)
      kernels::cpu::winograd_kernel(
          {.in = taps + (is_forward(pass_) ? 0 : 8 * width_) + half,
           .in_row = way * 3 * width_,
           .in_column = way * width_,
           .in_tile = 9 * width_,
           .out = kernels + block * kWinogradPoints * kernel_point_ + first * width_ + half,
           .out_row = 6 * kernel_point_,
           .out_column = kernel_point_,
           .out_tile = width_,
           .tiles = count});
  }

  void load_taps(const float* weight, int64_t m_stride, int64_t channels, float* taps) const {
    const auto& s = pass_.w.strides;
    if (s[4] == 1 && s[3] == 3) return kernels::cpu::transpose(weight, m_stride, taps, width_, channels, 9);
    for (int64_t h = 0; h < 3; ++h)
      for (int64_t w = 0; w < 3; ++w)
        for (int64_t m = 0; m < channels; ++m)
          taps[(h * 3 + w) * width_ + m] = weight[m * m_stride + h * s[3] + w * s[4]];
  }

  void run_block(const Bindings& bindings, const Block& b, const float* kernels, std::byte* scratch) const {
    auto* data = reinterpret_cast<float*>(scratch);
    auto* products = reinterpret_cast<float*>(scratch + data_bytes_);
    auto* strip = reinterpret_cast<float*>(scratch + data_bytes_ + product_bytes_);
    for (int64_t tap = 0; tap < b.taps; ++tap)
      for (int64_t c = 0; c < source_channels(pass_); c += lanes_)
        for (int64_t n = 0; n < b.images; ++n) transform_data(bindings, b, tap, c, n, strip, data);
    for (int64_t m = 0; m < m_blocks_; ++m) {
      multiply(b, kernels + (b.group * m_blocks_ + m) * kWinogradPoints * kernel_point_, data, products);
      for (int64_t half = 0; half < width_; half += lanes_) {
        const int64_t channel = m * width_ + half;
        if (channel >= result_channels(pass_)) break;
        for (int64_t n = 0; n < b.images; ++n) store_result(bindings, b, channel, n, products + half, strip);
      }
    }
  }

  void transform_data(const Bindings& bindings, const Block& b, int64_t tap, int64_t channel, int64_t n,
                      float* strip, float* data) const {
    const PassTensor& source = source_of(pass_);
    const auto& s = source.strides;
    const problem::Window &h = height_window(pass_), &w = width_window(pass_);
    const LaneStrip shape{.lanes = lanes_,
                          .channels = std::min(lanes_, source_channels(pass_) - channel),
                          .first_row = 4 * b.first_row + source_offset(pass_, h),
                          .rows = 4 * b.rows + 2,
                          .first_column = 4 * b.first_column + source_offset(pass_, w),
                          .columns = 4 * b.columns + 2,
                          .height = source_size(pass_, h),
                          .width = source_size(pass_, w)};
    const PhaseTap& depth = cut_.depth.taps[static_cast<size_t>(b.first_tap + tap)];
    const int64_t at = (b.first_image + n) * s[0] + (b.group * source_channels(pass_) + channel) * s[1] +
                       (b.plane * cut_.depth.source_step + depth.offset) * s[2];
    load_lanes(shape, static_cast<const float*>(bindings[source.operand]) + at, s, strip);
    const int64_t row_floats = shape.columns * lanes_;
    for (int64_t row = 0; row < b.rows; ++row)
      kernels::cpu::winograd_data(
          {.in = strip + 4 * row * row_floats,
           .in_row = row_floats,
           .in_column = lanes_,
           .in_tile = 4 * lanes_,
           .out = data + (n * b.rows + row) * b.columns * data_tile_ + tap * k_padded_ + channel,
           .out_row = 6 * data_point_,
           .out_column = data_point_,
           .out_tile = data_tile_,
           .tiles = b.columns});
  }

  void multiply(const Block& b, const float* kernels, const float* data, float* products) const {
    const int64_t tiles = b.images * b.rows * b.columns;
    kernels::cpu::TileProduct product;
    product.offsets = iota_.data();
    product.inner = source_channels(pass_);
    product.outer = b.taps;
    product.outer_stride = k_padded_;
    product.c_stride = width_;
    for (int64_t point = 0; point < kWinogradPoints; ++point) {
      product.b = kernels + point * kernel_point_ + b.first_tap * source_channels(pass_) * width_;
      for (int64_t t = 0; t < tiles; t += kernels::cpu::kTileRows) {
        product.rows = static_cast<int>(std::min<int64_t>(kernels::cpu::kTileRows, tiles - t));
        for (int row = 0; row < product.rows; ++row)
          product.a[row] = data + point * data_point_ + (t + row) * data_tile_;
        product.c = products + point * product_point_ + t * width_;
        kernels::cpu::tile_product(product);
      }
    }
  }

  void store_result(const Bindings& bindings, const Block& b, int64_t channel, int64_t n,
                    const float* products, float* strip) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const int64_t height = result_size(pass_, height_window(pass_)),
                  width = result_size(pass_, width_window(pass_));
    const LaneStrip shape{.lanes = lanes_,
                          .channels = std::min(lanes_, result_channels(pass_) - channel),
                          .first_row = 4 * b.first_row,
                          .rows = std::min(4 * b.rows, height - 4 * b.first_row),
                          .first_column = 4 * b.first_column,
                          .columns = std::min(4 * b.columns, width - 4 * b.first_column),
                          .height = height,
                          .width = width};
    const int64_t row_floats = shape.columns * lanes_;
    for (int64_t row = 0; row < b.rows; ++row)
      kernels::cpu::winograd_result({.in = products + (n * b.rows + row) * b.columns * width_,
                                     .in_row = 6 * product_point_,
                                     .in_column = product_point_,
                                     .in_tile = width_,
                                     .out = strip + 4 * row * row_floats,
                                     .out_row = row_floats,
                                     .out_column = lanes_,
                                     .out_tile = 4 * lanes_,
                                     .tiles = b.columns},
                                    shape.columns - 4 * (b.columns - 1));
    const int64_t at =
        (b.first_image + n) * s[0] + (b.group * result_channels(pass_) + channel) * s[1] + b.plane * s[2];
    store_lanes(shape, strip, s, static_cast<float*>(bindings[result.operand]) + at);
  }

  ConvPass pass_;
  int64_t width_, lanes_;
  WinogradGatherCut cut_;
  int64_t slots_;
  std::vector<int64_t> iota_;
  int64_t tasks_ = 0;
  int64_t m_blocks_ = 0;  // of `width_` result channels
  int64_t k_padded_ = 0;
  // Floats from one point to the next, and from one tile to the next.
  int64_t kernel_point_ = 0, data_point_ = 0, product_point_ = 0, data_tile_ = 0;
  size_t kernel_bytes_ = 0, data_bytes_ = 0, product_bytes_ = 0, slot_bytes_ = 0;
};

class WinogradGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.winograd_gather"; }
  bool reduces_precision() const override { return true; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == ConvPassKind::kGradWeight)
      return Support::no("computes forward and grad_input only");
    if (const auto reason = winograd_unfit(*conv)) return Support::no(*reason);
    if (!is_forward(*conv) && conv->axes[0].stride != 1) return Support::no("the stride along D is not 1");
    const Checked floats =
        Checked(kWinogradPoints) * conv->axes[0].kernel * source_channels(*conv) * result_channels(*conv);
    if (floats.get().value_or(INT64_MAX) > kMostKernelFloats)
      return Support::no("the transformed weights exceed the cache");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<WinogradGatherStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

WinogradGatherCut cut_winograd_gather(const ConvPass& p) {
  WinogradGatherCut cut;
  cut.depth = is_forward(p) ? forward_phase(p.axes[0]) : grad_input_phases(p.axes[0]).front();
  cut.tiles_h = ceil_div(result_size(p, height_window(p)), 4);
  cut.tiles_w = ceil_div(result_size(p, width_window(p)), 4);
  const int64_t terms = source_channels(p) * static_cast<int64_t>(cut.depth.taps.size());
  const int64_t all = p.groups * cut.depth.count * p.batch * cut.tiles_h * cut.tiles_w;
  const int64_t in_cache = kDataFloatsInL2 / (kWinogradPoints * std::max<int64_t>(terms, 1));
  const int64_t wanted = std::max(kFewestTiles, std::min(in_cache, ceil_div(all, kWantedTasks)));
  // Even blocks of at most `most`.
  const auto cut_axis = [](int64_t total, int64_t most, int64_t& size, int64_t& blocks) {
    blocks = ceil_div(total, std::clamp<int64_t>(most, 1, total));
    size = ceil_div(total, blocks);
    blocks = ceil_div(total, size);
  };
  cut_axis(cut.tiles_w, wanted, cut.columns, cut.blocks_w);
  cut_axis(cut.tiles_h, wanted / cut.columns, cut.rows, cut.blocks_h);
  const bool whole_planes = cut.blocks_w == 1 && cut.blocks_h == 1;
  cut_axis(p.batch, whole_planes ? wanted / (cut.rows * cut.columns) : 1, cut.images, cut.blocks_n);
  return cut;
}

const Candidate& winograd_gather() {
  static const WinogradGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// result[n, m, p·step] = Σ_k source[n, k, p] · weight[k, m]
//
// Positions of all images follow each other and are the vector side, so that results leave the tiles in the
// order of the result's rows. A task has a chunk of positions, in panels [k][width], and some of the result
// channels; weights are packed to [tile][k][row] once a call, and the tiles of a task run over its panels.
// The first of them reads the source in place where a panel lies in one piece, and leaves a copy for the
// others; other panels are copied before. Results that are too many for the caches go past them, which is a
// quarter faster where others use the caches too (1x1, 512 channels of 28 x 28).
#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/bias_start.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/cache_room.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/dense/grad_weight_blocking.h"
#include "engines/cpu/dense/pointwise_positions.h"
#include "engines/cpu/dense/pointwise_weights.h"
#include "engines/cpu/effort.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/dense/tile_product.h"
#include "kernels/cpu/layout/row_copy.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::PassTensor;
using problem::Window;

constexpr int64_t kMostPositions = 1024;    // of a chunk
constexpr int64_t kWantedTasks = 32;        // enough for the threads to share evenly
constexpr int64_t kTaskProducts = 1 << 19;  // about 10 us: less is not worth handing out
constexpr int64_t kFewestChannels = 8;      // of the source
constexpr int64_t kFewestPositions = 64;
constexpr int64_t kShortestRun = 256;  // dense_gather.cpp is faster on small planes without idle places
constexpr int64_t kFewestStreamedFloats = 1 << 19;
constexpr int64_t kLine = 64;              // bytes, of the caches and of the longest vector
constexpr int64_t kRowsAhead = 8;          // of the source, fetched while a row is multiplied
constexpr int64_t kChannelsAtOnce = 4096;  // as many offsets as a plan keeps

class PointwiseGatherStep final : public Step {
 public:
  PointwiseGatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(is_forward(pass) ? without_idle_places(pass) : pass),
        places_(pass_),
        room_(room_in(machine.cpu.caches)),
        width_(widest_vectors_of(machine).tile_width()),
        k_(source_channels(pass)),
        m_(result_channels(pass)),
        m_tiles_(ceil_div(m_, widest_vectors_of(machine).tile_rows(width_))),
        tile_rows_(ceil_div(m_, m_tiles_)),
        panels_(ceil_div(places_.count(), width_)),
        weights_(pass_, tile_rows_) {
    m_tiles_ = ceil_div(m_, tile_rows_);
    cut_tasks();
    for (int64_t k = 0; k < std::min(k_, kChannelsAtOnce); ++k) {
      weight_list_.push_back(k * tile_rows_);
      source_list_.push_back(k * source_of(pass_).strides[1]);
    }
    slots_.count = std::min<int64_t>(machine.cpu.threads, tasks());
    packed_ = slots_.shared.add<float>(weights_.floats());
    panel_ = slots_.own.add<float>(chunk_ * width_ * k_);
    row_ = slots_.own.add<float>(weights_.scratch_floats());
    sums_ = slots_.own.add<float>(tile_rows_ * chunk_ * width_);
    bias_ = slots_.own.add<float>(bias_floats(pass_, tiles_per_task_ * tile_rows_));
    const PassTensor& result = pass_.result();
    int64_t floats = pass_.batch * m_ * pass_.groups;
    for (const Window& w : pass_.axes) floats *= is_forward(pass_) ? w.y : w.x;
    streams_ = result.dtype == DType::kF32 && floats >= kFewestStreamedFloats &&
               result.strides[1] % (kLine / static_cast<int64_t>(sizeof(float))) == 0;
  }

  std::string describe() const override {
    return fmt::format(
        "tiles of {} channels x {} positions; {} tasks: {} groups, {} chunks of {} panels, {} blocks of {} "
        "tiles",
        tile_rows_, width_, tasks(), pass_.groups, chunks_, chunk_, m_blocks_, tiles_per_task_);
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const weights = packed_.in(workspace);
    const auto pack = [&](int64_t task, int64_t slot) {
      weights_.pack(bindings, task, row_.in(slots_.at(workspace, slot)), weights);
    };
    const auto compute = [&](int64_t task, int64_t slot) {
      run_task(bindings, task, weights, slots_.at(workspace, slot));
    };
    run_stages(*context.pool, slots_.count, weights_.tasks(), pack, tasks(), compute);
  }

 private:
  int64_t tasks() const { return pass_.groups * chunks_ * m_blocks_; }

  void cut_tasks() {
    const double products = static_cast<double>(places_.count()) * static_cast<double>(pass_.groups) *
                            static_cast<double>(k_) * static_cast<double>(m_);
    const auto tasks =
        static_cast<int64_t>(std::clamp(products / kTaskProducts, 1.0, static_cast<double>(kWantedTasks)));
    const int64_t room = std::clamp(room_.l2 / 4 / (k_ * width_), int64_t{1}, kMostPositions / width_);
    chunk_ = std::clamp<int64_t>(ceil_div(panels_ * pass_.groups, tasks), 1, room);
    std::tie(chunk_, chunks_) = cut_evenly(panels_, chunk_);
    const int64_t shares = std::clamp<int64_t>(tasks / (chunks_ * pass_.groups), 1, m_tiles_);
    tiles_per_task_ = ceil_div(m_tiles_, shares);
    m_blocks_ = ceil_div(m_tiles_, tiles_per_task_);
  }

  void run_task(const Bindings& bindings, int64_t task, const float* weights, std::byte* memory) const {
    float *const panels = panel_.in(memory), *const sums = sums_.in(memory);
    const int64_t m_block = task % m_blocks_, chunk = task / m_blocks_ % chunks_;
    const int64_t group = task / m_blocks_ / chunks_;
    const int64_t first = chunk * chunk_ * width_, last = std::min(first + chunk_ * width_, places_.count());
    for (int64_t p = first; p < last; p += width_)
      if (panel_in_place(bindings, group, p, last) == nullptr)
        pack_panel(bindings, group, p, std::min(p + width_, last), panels + (p - first) * k_);
    const int64_t begin = m_block * tiles_per_task_, end = std::min(begin + tiles_per_task_, m_tiles_);
    const float* bias = load_bias(pass_, bindings, group * m_ + begin * tile_rows_,
                                  std::min(end * tile_rows_, m_) - begin * tile_rows_, bias_.in(memory));
    const Chunk c{group, first, last, begin, panels, sums, bias};
    // Conversions want long rows, and so do scattered stores: all positions of a tile's channels together.
    const bool converts =
        pass_.result().dtype != DType::kF32 || pass_.result().strides[4] != 1 || places_.has_idle_places();
    if (!converts && panels_fit_l1()) {
      for (int64_t p = first; p < last; p += width_) {
        const Panel panel = panel_at(bindings, c, p);
        for (int64_t index = begin; index < end; ++index)
          if (!multiply(c, panel, weights, index)) store(bindings, c, index, p, std::min(p + width_, last));
      }
    } else {
      for (int64_t index = begin; index < end; ++index) {
        for (int64_t p = first; p < last; p += width_)
          if (!multiply(c, panel_at(bindings, c, p), weights, index) && !converts)
            store(bindings, c, index, p, std::min(p + width_, last));
        if (converts) store(bindings, c, index, first, last);
      }
    }
    if (streams_) kernels::cpu::end_stream();
  }

  int64_t rows_of(int64_t index) const { return std::min(tile_rows_, m_ - index * tile_rows_); }
  // Then all tiles read one before the next one's turn comes, which is fetched meanwhile.
  bool panels_fit_l1() const { return k_ * width_ <= room_.l1; }

  // What the tiles of a task share.
  struct Chunk {
    int64_t group, first, last;  // positions
    int64_t first_tile;
    float *panels, *sums;
    const float* bias;  // from the first tile's channels on; null: none is added
  };
  // Where a panel's source lies, and that of the next one, and its results, from those of channel 0 on; null
  // where they do not lie side by side.
  struct Panel {
    int64_t p;
    const float *in_place, *next;
    float* results;
  };

  Panel panel_at(const Bindings& bindings, const Chunk& c, int64_t p) const {
    const bool whole = p + width_ <= c.last;
    return {p, panel_in_place(bindings, c.group, p, c.last),
            panels_fit_l1() ? panel_in_place(bindings, c.group, p + width_, c.last) : nullptr,
            whole ? results_in_place(bindings, p) : nullptr};
  }

  // One tile of one panel; whether the results are where they belong, or among the sums.
  bool multiply(const Chunk& c, const Panel& panel, const float* weights, int64_t index) const {
    const float* const rows = weights_.at(weights, c.group, index);
    float* const packed = c.panels + (panel.p - c.first) * k_;
    const int64_t source_stride = source_of(pass_).strides[1], stride = pass_.result().strides[1];
    const bool direct = panel.results != nullptr;
    kernels::cpu::TileProduct tile;
    tile.offsets = weight_list_.data();
    tile.c =
        direct ? panel.results + (c.group * m_ + index * tile_rows_) * stride : c.sums + (panel.p - c.first);
    tile.c_stride = direct ? stride : chunk_ * width_;
    if (c.bias != nullptr) tile.start = c.bias + (index - c.first_tile) * tile_rows_;
    tile.start_column = true;
    for (int64_t k = 0; k < k_; k += kChannelsAtOnce) {
      tile.inner = std::min(kChannelsAtOnce, k_ - k);
      tile.set_rows(rows + k * tile_rows_, 1, rows_of(index));
      tile.b = packed + k * width_;
      if (index == c.first_tile && panel.in_place != nullptr) {
        tile.b_copy = packed + k * width_;
        tile.b = panel.in_place + k * source_stride;
        tile.b_offsets = source_list_.data();
        tile.b_ahead = kRowsAhead * source_stride;
      } else if (index == c.first_tile + 1 && panel.next != nullptr) {
        tile.next = panel.next + k * source_stride;
        tile.next_stride = source_stride;
      }
      tile.accumulate = k > 0;
      tile.stream =
          streams_ && direct && k_ <= kChannelsAtOnce && reinterpret_cast<uintptr_t>(tile.c) % kLine == 0;
      kernels::cpu::tile_product(tile);
    }
    return direct;
  }

  // Where a whole panel of plain FP32 lies in the source; else null.
  const float* panel_in_place(const Bindings& bindings, int64_t group, int64_t p, int64_t last) const {
    const PassTensor& t = source_of(pass_);
    if (!is_plain(t, pass_.rounding) || t.strides[4] != 1 || p + width_ > last ||
        places_.source_run(p) < width_)
      return nullptr;
    return static_cast<const float*>(bindings[t.operand]) + group * k_ * t.strides[1] + places_.source_at(p);
  }

  // panel[k][width], zeros behind the last position.
  void pack_panel(const Bindings& bindings, int64_t group, int64_t first, int64_t last, float* panel) const {
    const PassTensor& t = source_of(pass_);
    const auto& s = t.strides;
    const auto bytes = static_cast<int64_t>(size_of(t.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[t.operand]) + group * k_ * s[1] * bytes;
    const bool plain = is_plain(t, pass_.rounding) && s[4] == 1;
    for (int64_t p = first; p < last;) {
      const int64_t run = std::min(places_.source_run(p), last - p);
      const std::byte* from = base + places_.source_at(p) * bytes;
      float* out = panel + p - first;
      if (plain)
        kernels::cpu::copy_rows(reinterpret_cast<const float*>(from), s[1], out, width_, k_, run);
      else
        for (int64_t k = 0; k < k_; ++k)
          load_row(t.dtype, pass_.rounding, from + k * s[1] * bytes, s[4], run, out + k * width_);
      p += run;
    }
    for (int64_t k = 0; last - first < width_ && k < k_; ++k)
      std::fill(panel + k * width_ + last - first, panel + (k + 1) * width_, 0.0F);
  }

  // Where `width` results of channel 0 lie side by side in the result; else null.
  float* results_in_place(const Bindings& bindings, int64_t p) const {
    const PassTensor& result = pass_.result();
    if (result.dtype != DType::kF32 || result.strides[4] != 1 || places_.result_run(p) < width_ ||
        places_.has_idle_places())
      return nullptr;
    return static_cast<float*>(bindings[result.operand]) + places_.result_at(p);
  }

  // Sums of a tile's channels, positions from `begin` to `end`.
  void store(const Bindings& bindings, const Chunk& c, int64_t index, int64_t begin, int64_t end) const {
    const PassTensor& result = pass_.result();
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    const int64_t channel = c.group * m_ + index * tile_rows_;
    auto* base = static_cast<std::byte*>(bindings[result.operand]) + channel * result.strides[1] * bytes;
    for (int64_t p = begin; p < end;) {
      const int64_t run = std::min(places_.result_run(p), end - p);
      places_.store(base, p, run, c.sums + p - c.first, chunk_ * width_, rows_of(index), streams_);
      p += run;
    }
  }

  ConvPass pass_;
  PointwisePositions places_;
  CacheRoom room_;  // panels have a quarter of L2; one that L1 holds is read by all tiles before the next
  int64_t width_, k_, m_, m_tiles_, tile_rows_, panels_;
  PointwiseWeights weights_;
  // Floats from the first channel to channel k: in a tile's packed weights, and in the source.
  std::vector<int64_t> weight_list_, source_list_;
  int64_t chunk_ = 0, chunks_ = 0;  // panels in a chunk, and how many chunks there are
  int64_t tiles_per_task_ = 0, m_blocks_ = 0;
  bool streams_ = false;  // results go past the caches where they are aligned
  Slots slots_;
  Part<float> packed_, panel_, row_, sums_, bias_;
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& /*machine*/) {
  for (const Window& w : conv.axes)
    if (!is_pointwise(w)) return "the kernel has more than one tap, or padding";
  const PointwisePositions places(conv);
  if (conv.bias && places.has_idle_places()) return "the bias would have to go between the positions, too";
  if (places.count() < kFewestPositions) return "fewer than 64 positions";
  if (!places.has_idle_places() && places.source_run(0) < kShortestRun)
    return "fewer than 256 positions follow each other in memory";
  if (source_of(conv).strides[1] == 1) return "channels lie side by side: nothing needs packing";
  if (source_channels(conv) < kFewestChannels) return "a group has fewer than 8 source channels";
  return std::nullopt;
}

}  // namespace

const Candidate& pointwise_gather() {
  static const ConvCandidate instance(
      {"cpu.pointwise_gather", kGathers, unfit, pointwise_gather_effort, make<PointwiseGatherStep>});
  return instance;
}

}  // namespace retrograd::engines::cpu

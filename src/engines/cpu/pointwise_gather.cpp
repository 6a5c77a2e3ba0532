// SPDX-License-Identifier: Apache-2.0
// result[n, m, p·step] = Σ_k source[n, k, p] · weight[k, m]
//
// Positions of all images follow each other and are the vector side, so that results leave the tiles in the
// order of the result's rows. A task packs the source of a chunk of positions to panels [k][width], and runs
// tiles of 6 result channels over them; weights are packed to [m / 6][k][6] once a call. Where grad_input has
// a stride, a position owns the places up to the next one, and writes zeros there.
#include "engines/cpu/pointwise_gather.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/grad_weight_blocking.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::kTileRows;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;
using problem::Window;

constexpr int64_t kPanelFloatsInL2 = 65536;
constexpr int64_t kMostPositions = 1024;    // of a chunk
constexpr int64_t kWantedTasks = 16;        // enough for the threads to share evenly
constexpr int64_t kTaskProducts = 1 << 19;  // about 10 us: less is not worth handing out
constexpr int64_t kTilesAtOnce = 4;         // whose weights are packed together
constexpr int64_t kFewestChannels = 8;      // of the source
constexpr int64_t kFewestPositions = 256;   // in a row: dense_gather.cpp is faster on shorter ones

// Whether the kernel has one tap that reads inside x from every position.
bool is_pointwise(const Window& w) {
  return w.kernel == 1 && w.pad_lo == 0 && w.stride > 0 && (w.y - 1) <= (w.x - 1) / w.stride;
}

// The same pass with rows, planes and volumes joined where they follow each other in both tensors.
ConvPass joined(ConvPass pass) {
  if (is_forward(pass)) pass = without_idle_places(pass);
  auto& axes = pass.axes;
  for (size_t axis = 2; axis-- > 0;) {
    Window &outer = axes[axis], &inner = axes[2];
    const auto touches = [&](const PassTensor& t) {
      return outer.y == 1 || inner.y == 1 || t.strides[axis + 2] == inner.y * t.strides[4];
    };
    if (outer.stride != 1 || inner.stride != 1 || outer.x != outer.y || inner.x != inner.y ||
        !touches(pass.x) || !touches(pass.y))
      break;
    if (outer.y > 1 && inner.y == 1) {
      pass.x.strides[4] = pass.x.strides[axis + 2];
      pass.y.strides[4] = pass.y.strides[axis + 2];
    }
    inner.x = inner.y = inner.y * outer.y;
    outer.x = outer.y = 1;
  }
  return pass;
}

class PointwiseGatherStep final : public Step {
 public:
  explicit PointwiseGatherStep(const ConvPass& pass)
      : pass_(joined(pass)),
        width_(kernels::cpu::tile_width()),
        k_(source_channels(pass)),
        m_(result_channels(pass)),
        m_tiles_(ceil_div(m_, kTileRows)),
        positions_(pass.batch * pass.axes[0].y * pass.axes[1].y * pass.axes[2].y),
        slots_(runtime::ThreadPool::instance().threads()) {
    const double products = static_cast<double>(positions_) * static_cast<double>(pass.groups) *
                            static_cast<double>(k_) * static_cast<double>(m_);
    const auto tasks =
        static_cast<int64_t>(std::clamp(products / kTaskProducts, 1.0, static_cast<double>(kWantedTasks)));
    const int64_t panels = ceil_div(positions_, width_);
    const int64_t room = std::clamp(kPanelFloatsInL2 / (k_ * width_), int64_t{1}, kMostPositions / width_);
    chunk_ = std::clamp<int64_t>(ceil_div(panels * pass.groups, tasks), 1, room);
    chunks_ = ceil_div(panels, chunk_);
    chunk_ = ceil_div(panels, chunks_);
    const int64_t shares = std::clamp<int64_t>(tasks / (chunks_ * pass.groups), 1, m_tiles_);
    tiles_per_task_ = ceil_div(m_tiles_, shares);
    m_blocks_ = ceil_div(m_tiles_, tiles_per_task_);
    weight_bytes_ = part_bytes<float>(pass.groups * m_tiles_ * kTileRows * k_);
    list_bytes_ = part_bytes<int64_t>(k_);
    panel_bytes_ = part_bytes<float>(chunk_ * width_ * k_);
    row_bytes_ =
        part_bytes<float>(std::max(chunk_ * width_, kTilesAtOnce * kTileRows * std::max<int64_t>(k_, 1)));
    slot_bytes_ = panel_bytes_ + row_bytes_ + part_bytes<float>(kTileRows * width_);
  }

  size_t workspace_bytes() const override {
    const int64_t most = std::max(tasks(), pass_.groups * m_tiles_);
    return weight_bytes_ + list_bytes_ + static_cast<size_t>(std::min(slots_, most)) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* weights = reinterpret_cast<float*>(workspace);
    auto* offsets = reinterpret_cast<int64_t*>(workspace + weight_bytes_);
    for (int64_t k = 0; k < k_; ++k) offsets[k] = k * kTileRows;
    std::byte* slots = workspace + weight_bytes_ + list_bytes_;
    const int64_t packs = ceil_div(m_tiles_, kTilesAtOnce);
    run_tasks(*context.pool, pass_.groups * packs, slots_, [&](int64_t pack, int64_t slot) {
      auto* row = reinterpret_cast<float*>(slots + static_cast<size_t>(slot) * slot_bytes_ + panel_bytes_);
      const int64_t tile = pack % packs * kTilesAtOnce, group = pack / packs;
      pack_weights(bindings, group, tile * kTileRows, std::min(kTilesAtOnce, m_tiles_ - tile), row,
                   weights + (group * m_tiles_ + tile) * kTileRows * k_);
    });
    run_tasks(*context.pool, tasks(), slots_, [&](int64_t task, int64_t slot) {
      run_task(bindings, task, weights, offsets, slots + static_cast<size_t>(slot) * slot_bytes_);
    });
  }

 private:
  int64_t tasks() const { return pass_.groups * chunks_ * m_blocks_; }

  // Positions that follow each other in one row of one image.
  struct Piece {
    int64_t n, d, h, w, count;
  };
  // Calls body(piece, positions before it) for the pieces of [first, last).
  template <class Body>
  void for_pieces(int64_t first, int64_t last, const Body& body) const {
    const int64_t length = pass_.axes[2].y, height = pass_.axes[1].y, depth = pass_.axes[0].y;
    for (int64_t p = first; p < last;) {
      const int64_t row = p / length, w = p % length, count = std::min(last - p, length - w);
      body(Piece{row / height / depth, row / height % depth, row % height, w, count}, p - first);
      p += count;
    }
  }

  // out[tile][k][6] of the result channels from m on, `tiles` tiles.
  void pack_weights(const Bindings& bindings, int64_t group, int64_t m, int64_t tiles, float* row,
                    float* out) const {
    const auto& s = pass_.w.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.w.dtype));
    const int64_t m_stride = is_forward(pass_) ? s[0] : s[1], k_stride = is_forward(pass_) ? s[1] : s[0];
    const int64_t count = std::min(tiles * kTileRows, m_ - m);
    const std::byte* from = static_cast<const std::byte*>(bindings[pass_.w.operand]) +
                            (group * pass_.y_channels_per_group() * s[0] + m * m_stride) * bytes;
    const int64_t tile_floats = kTileRows * k_;
    if (k_stride != 1) {
      for (int64_t k = 0; k < k_; ++k) {
        load_row(pass_.w.dtype, pass_.rounding, from + k * k_stride * bytes, m_stride, count, row);
        for (int64_t i = 0; i < count; ++i)
          out[i / kTileRows * tile_floats + k * kTileRows + i % kTileRows] = row[i];
      }
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      load_row(pass_.w.dtype, pass_.rounding, from + i * m_stride * bytes, k_stride, k_, row + i * k_);
    for (int64_t i = 0; i < count; i += kTileRows)
      kernels::cpu::transpose(row + i * k_, k_, out + i / kTileRows * tile_floats, kTileRows,
                              std::min<int64_t>(kTileRows, count - i), k_);
  }

  void run_task(const Bindings& bindings, int64_t task, const float* weights, const int64_t* offsets,
                std::byte* scratch) const {
    auto* panels = reinterpret_cast<float*>(scratch);
    auto* row = reinterpret_cast<float*>(scratch + panel_bytes_);
    auto* sums = reinterpret_cast<float*>(scratch + panel_bytes_ + row_bytes_);
    const int64_t m_block = task % m_blocks_, chunk = task / m_blocks_ % chunks_;
    const int64_t group = task / m_blocks_ / chunks_;
    const int64_t first = chunk * chunk_ * width_, last = std::min(first + chunk_ * width_, positions_);
    pack_panels(bindings, group, first, last, row, panels);
    kernels::cpu::TileProduct tile;
    tile.offsets = offsets;
    tile.inner = k_;
    const int64_t end = std::min((m_block + 1) * tiles_per_task_, m_tiles_);
    for (int64_t index = m_block * tiles_per_task_; index < end; ++index) {
      const int64_t m = index * kTileRows;
      tile.rows = static_cast<int>(std::min<int64_t>(kTileRows, m_ - m));
      for (int i = 0; i < tile.rows; ++i)
        tile.a[i] = weights + (group * m_tiles_ + index) * kTileRows * k_ + i;
      for (int64_t p = first; p < last; p += width_) {
        tile.b = panels + (p - first) * k_;
        float* direct = p + width_ <= last ? direct_rows(bindings, group * m_ + m, p) : nullptr;
        tile.c = direct != nullptr ? direct : sums;
        tile.c_stride = direct != nullptr ? pass_.result().strides[1] : width_;
        kernels::cpu::tile_product(tile);
        if (direct == nullptr)
          store(bindings, group * m_ + m, tile.rows, p, std::min(p + width_, last), sums);
      }
    }
  }

  // panels[positions / width][k][width]
  void pack_panels(const Bindings& bindings, int64_t group, int64_t first, int64_t last, float* row,
                   float* panels) const {
    const PassTensor& t = source_of(pass_);
    const auto& s = t.strides;
    const auto bytes = static_cast<int64_t>(size_of(t.dtype));
    const auto* base = static_cast<const std::byte*>(bindings[t.operand]) + group * k_ * s[1] * bytes;
    const int64_t count = last - first;
    const bool plain = is_plain(t, pass_.rounding) && s[4] == 1;
    for (int64_t k = 0; k < k_; ++k) {
      const float* from = row;
      for_pieces(first, last, [&](const Piece& piece, int64_t before) {
        const std::byte* source =
            base + (piece.n * s[0] + k * s[1] + piece.d * s[2] + piece.h * s[3] + piece.w * s[4]) * bytes;
        if (plain && piece.count == count)
          from = reinterpret_cast<const float*>(source);
        else
          load_row(t.dtype, pass_.rounding, source, s[4], piece.count, row + before);
      });
      for (int64_t p = 0; p < count; p += width_) {
        float* out = panels + p * k_ + k * width_;
        const int64_t used = std::min(width_, count - p);
        if (used == width_) {
          copy_vectors(from + p, out);
        } else {
          std::copy_n(from + p, used, out);
          std::fill(out + used, out + width_, 0.0F);
        }
      }
    }
  }

  // `width` floats without a call: there is one such copy for each channel and panel.
  void copy_vectors(const float* from, float* out) const {
    for (int64_t i = 0; i < width_; i += 2) {
      out[i] = from[i];
      out[i + 1] = from[i + 1];
    }
  }

  // Where `width` results of a channel lie side by side in the result; else null.
  float* direct_rows(const Bindings& bindings, int64_t channel, int64_t p) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const int64_t length = pass_.axes[2].y, w = p % length, row = p / length;
    if (result.dtype != DType::kF32 || s[4] != 1 || w + width_ > length || has_strides()) return nullptr;
    const int64_t height = pass_.axes[1].y, depth = pass_.axes[0].y;
    return static_cast<float*>(bindings[result.operand]) + row / height / depth * s[0] + channel * s[1] +
           row / height % depth * s[2] + row % height * s[3] + w;
  }

  bool has_strides() const {
    return !is_forward(pass_) && (pass_.axes[0].x != pass_.axes[0].y || pass_.axes[1].x != pass_.axes[1].y ||
                                  pass_.axes[2].x != pass_.axes[2].y);
  }

  void store(const Bindings& bindings, int64_t channel, int64_t channels, int64_t first, int64_t last,
             const float* sums) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    const std::array<int64_t, 3> step =
        is_forward(pass_)
            ? std::array<int64_t, 3>{1, 1, 1}
            : std::array<int64_t, 3>{pass_.axes[0].stride, pass_.axes[1].stride, pass_.axes[2].stride};
    auto* base = static_cast<std::byte*>(bindings[result.operand]) + channel * s[1] * bytes;
    for_pieces(first, last, [&](const Piece& piece, int64_t before) {
      const int64_t at =
          piece.n * s[0] + piece.d * step[0] * s[2] + piece.h * step[1] * s[3] + piece.w * step[2] * s[4];
      for (int64_t i = 0; i < channels; ++i) {
        std::byte* out = base + (i * s[1] + at) * bytes;
        if (has_strides()) clear_owned(piece, out);
        store_row(result.dtype, out, step[2] * s[4], sums + i * width_ + before, 1, piece.count);
      }
    });
  }

  // Zeros from each position up to the next one along every axis; the last ones own the rest.
  void clear_owned(const Piece& piece, std::byte* out) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    const auto owned = [&](size_t axis, int64_t first, int64_t count) {
      const Window& w = pass_.axes[axis];
      return (first + count == w.y ? w.x : (first + count) * w.stride) - first * w.stride;
    };
    const float zero = 0;
    const int64_t length = owned(2, piece.w, piece.count);
    for (int64_t d = 0; d < owned(0, piece.d, 1); ++d)
      for (int64_t h = 0; h < owned(1, piece.h, 1); ++h) {
        std::byte* row = out + (d * s[2] + h * s[3]) * bytes;
        if (result.dtype == DType::kF32 && s[4] == 1)
          std::fill_n(reinterpret_cast<float*>(row), length, 0.0F);
        else
          store_row(result.dtype, row, s[4], &zero, 0, length);
      }
  }

  ConvPass pass_;
  int64_t width_, k_, m_, m_tiles_, positions_;
  int64_t slots_;
  int64_t chunk_ = 0, chunks_ = 0;  // panels in a chunk, and how many there are
  int64_t tiles_per_task_ = 0, m_blocks_ = 0;
  size_t weight_bytes_ = 0, list_bytes_ = 0, panel_bytes_ = 0, row_bytes_ = 0, slot_bytes_ = 0;
};

class PointwiseGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.pointwise_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == ConvPassKind::kGradWeight)
      return Support::no("computes forward and grad_input only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    for (const Window& w : conv->axes)
      if (!is_pointwise(w)) return Support::no("the kernel has more than one tap, or padding");
    if (joined(*conv).axes[2].y < kFewestPositions)
      return Support::no("fewer than 256 positions follow each other in memory");
    if (source_of(*conv).strides[1] == 1)
      return Support::no("channels lie side by side: nothing needs packing");
    if (source_channels(*conv) < kFewestChannels)
      return Support::no("a group has fewer than 8 source channels");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<PointwiseGatherStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& pointwise_gather() {
  static const PointwiseGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

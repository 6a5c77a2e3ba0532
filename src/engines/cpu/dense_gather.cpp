// SPDX-License-Identifier: Apache-2.0
// result[n, m, place(j)] = Σ_k Σ_t source[n, k, j·source_step + offset(t)] · weight[k, m, t]
//
// A task is one box of positions and a block of result channels of one group. For each block of source
// channels it copies a strip, then runs all tiles of rows (positions) × `width` result channels over it; sums
// of the box stay in a buffer [phase][position][m] until the last block is done. Strip and sums stay in L2,
// from where packed weights stream through L1 for each tile.
//
// A tile's rows are neighbours along W that have the same live taps, or images at one place: taps that read
// outside the source are left out. Only where the live taps change from one neighbour to the next (padding of
// 1) is the strip padded with zeros. That multiplies a weight by 0 where the mathematics skips it, which is
// the same unless the weight is not finite: weights are looked at while they are packed, and a pass with such
// a weight is left to the reference.
#include "engines/cpu/dense_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "base/checked.h"
#include "engines/cpu/bf16_cells.h"
#include "engines/cpu/dense_blocking.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"
#include "engines/cpu/weight_panels.h"
#include "engines/reference/reference.h"
#include "kernels/cpu/bf16_pairs.h"
#include "kernels/cpu/row_copy.h"
#include "kernels/cpu/tile_product.h"
#include "kernels/cpu/transpose.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr size_t kMostPhases = 4096;
constexpr int64_t kMostListedTaps = int64_t{1} << 22;

// Whether the channels of a plain tensor follow each other so closely that they may be read in turn where
// they are: not each in another page, and not all in the same lines of L1.
bool has_small_planes(const PassTensor& tensor) {
  constexpr int64_t kMostFloats = 1280, kUnluckyFloats = 256;
  return tensor.strides[1] > 0 && tensor.strides[1] <= kMostFloats && tensor.strides[1] % kUnluckyFloats != 0;
}

// Whether weights of one tap, whose result channels lie side by side, are used so few times that packing them
// would take as long.
bool reads_weights_in_place(const ConvPass& pass, const DenseBlocking& cut) {
  constexpr int64_t kMostPositions = 64;
  const int64_t m_stride = is_forward(pass) ? pass.w.strides[0] : pass.w.strides[1];
  return cut.phases.size() == 1 && cut.most_taps == 1 && m_stride == 1 && is_plain(pass.w, pass.rounding) &&
         result_channels(pass) % cut.width == 0 && count_of(cut.grid.total) <= kMostPositions;
}

class DenseGatherStep final : public Step {
 public:
  // What it cannot compute, `fallback` does.
  DenseGatherStep(const CellPass& cells, std::unique_ptr<const Step> fallback)
      : pass_(joined_rows(cells.pass)),
        partner_(is_forward(pass_) ? cells.x : cells.y),
        cut_(plan_dense_gather(pass_)),
        panels_(pass_, cut_, cells.w),
        slots_(runtime::ThreadPool::instance().threads()),
        fallback_(std::move(fallback)) {
    const PassTensor& source = source_of(pass_);
    // Places a multiple of 1 KiB apart share four sets of L1, which the rows of a tile then fight for: 1.9
    // times slower than a copy (256 channels last, 14 x 14).
    const bool aliased = source.strides[4] % 256 == 0 && source.strides[4] != 0;
    in_place_ = is_plain(source, pass_.rounding) && cut_.skips_dead_taps[2] && !aliased &&
                (source.strides[1] == 1 || (!cut_.images_inside && has_small_planes(source)));
    weights_in_place_ = partner_ == 0 && reads_weights_in_place(pass_, cut_);
    for (const DensePhase& phase : cut_.phases)
      pads_ |= phase.taps > 0 && !cut_.skips_dead_taps[2] && phase.axes[2].leaves_source();
    const int64_t strip = cut_.grid.box[0] * cut_.channels_per_block * cut_.plane();
    sum_floats_ = count_of(cut_.grid.box) * cut_.m_block;
    sum_bytes_ = part_bytes<float>(static_cast<int64_t>(cut_.phases.size()) * sum_floats_);
    strip_bytes_ = in_place_ ? 0 : part_bytes<float>(strip);
    turned_bytes_ = in_place_ || !cut_.images_inside ? 0 : strip_bytes_;
    if (cut_.whole_images) {
      shared_bytes_ = in_place_ ? 0
                                : part_bytes<float>(cut_.grid.boxes[0] * cut_.grid.box[0] * pass_.groups *
                                                    source_channels(pass_) * cut_.plane());
      turned_bytes_ = 0;
      if (!cut_.images_inside) strip_bytes_ = 0;
      block_bytes_ = part_bytes<float>(panels_.block_floats(cut_.channels_per_block));
      pack_bytes_ = part_bytes<float>(panels_.scratch_floats());
    }
    const int64_t row = cut_.m_block * cut_.grid.box[3];
    row_bytes_ = part_bytes<float>(cut_.w_phases > 1 ? 2 * row * static_cast<int64_t>(cut_.w_phases) : row);
    list_bytes_ = part_bytes<int64_t>(cut_.most_taps);
    slot_bytes_ =
        sum_bytes_ + strip_bytes_ + turned_bytes_ + row_bytes_ + 2 * list_bytes_ + block_bytes_ + pack_bytes_;
  }

  std::string describe() const override {
    return fmt::format(
        "tiles of {} positions x {} channels; {} tasks: {} groups, {}, {} blocks of {} result channels; "
        "strips "
        "of {} source channels{}{}; {} phases of up to {} taps",
        kernels::cpu::tile_rows(cut_.width), cut_.width, cut_.tasks(pass_.groups), pass_.groups,
        to_string(cut_.grid), cut_.m_blocks, cut_.m_block, cut_.channels_per_block,
        in_place_ ? " read in place" : "", cut_.whole_images ? " for all tasks" : "", cut_.phases.size(),
        cut_.most_taps);
  }

  size_t workspace_bytes() const override {
    const int64_t most = std::max(cut_.tasks(pass_.groups), cut_.whole_images ? strips() : 0);
    return std::max(
        panels_.bytes() + shared_bytes_ + static_cast<size_t>(std::min(slots_, most)) * slot_bytes_,
        fallback_->workspace_bytes());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto* panels = reinterpret_cast<const float*>(workspace);
    auto* shared = reinterpret_cast<float*>(workspace + panels_.bytes());
    std::byte* slots = workspace + panels_.bytes() + shared_bytes_;
    std::atomic<bool> sound{true};
    const auto judge = [&](const Task& task) {
      if (!task.sound) sound.store(false, std::memory_order_relaxed);
    };
    if (weights_in_place_) {
      panels = static_cast<const float*>(bindings[pass_.w.operand]);
    } else if (!cut_.whole_images) {
      sound = panels_.pack(bindings, reinterpret_cast<float*>(workspace), *context.pool, pads_);
    } else if (!in_place_) {
      run_tasks(*context.pool, strips(), slots_, [&](int64_t strip, int64_t slot) {
        judge(share_strip(bindings, strip, shared, slots + static_cast<size_t>(slot) * slot_bytes_));
      });
    }
    if (sound)
      run_tasks(*context.pool, cut_.tasks(pass_.groups), slots_, [&](int64_t index, int64_t slot) {
        Task task = make_task(index, slots + static_cast<size_t>(slot) * slot_bytes_);
        run_task(bindings, task, panels, shared);
        judge(task);
      });
    if (!sound) fallback_->run(bindings, workspace, context);
  }

 private:
  // A task while it runs.
  struct Task {
    int64_t group, m_first, m_count;  // channels within the group
    BoxGrid::Box box;
    std::array<int64_t, 3> start;  // place of the strip in the source
    float *sums, *strip, *turned, *row, *block, *pack;
    int64_t *offsets, *b_offsets;
    bool sound = true;  // no weight that must be finite is not, no number was too small for its cell
  };
  // Where a source value lies: floats from one image, channel and place to the next.
  struct Source {
    const float* first;
    int64_t image, channel;
    std::array<int64_t, 3> axis;
  };
  // Taps that the rows of a tile have in common.
  struct LiveTaps {
    std::array<TapRange, 3> ranges;
    int64_t count = -1;
  };

  Task make_task(int64_t index, std::byte* scratch) const {
    Task task;
    task.m_first = index % cut_.m_blocks * cut_.m_block;
    task.m_count = std::min(cut_.m_block, result_channels(pass_) - task.m_first);
    index /= cut_.m_blocks;
    task.group = index / cut_.grid.count();
    task.box = cut_.grid.at(index % cut_.grid.count());
    for (size_t axis = 0; axis < 3; ++axis) {
      const int64_t step = cut_.phases.front().axes[axis].source_step;
      task.start[axis] = task.box.first[axis + 1] * step + cut_.lowest[axis];
      if (cut_.skips_dead_taps[axis]) task.start[axis] = std::max<int64_t>(task.start[axis], 0);
    }
    const auto take = [&](size_t bytes) {
      std::byte* part = scratch;
      scratch += bytes;
      return part;
    };
    task.sums = reinterpret_cast<float*>(take(sum_bytes_));
    task.strip = reinterpret_cast<float*>(take(strip_bytes_));
    task.turned = reinterpret_cast<float*>(take(turned_bytes_));
    task.row = reinterpret_cast<float*>(take(row_bytes_));
    task.offsets = reinterpret_cast<int64_t*>(take(list_bytes_));
    task.b_offsets = reinterpret_cast<int64_t*>(take(list_bytes_));
    task.block = reinterpret_cast<float*>(take(block_bytes_));
    task.pack = reinterpret_cast<float*>(take(pack_bytes_));
    return task;
  }

  void run_task(const Bindings& bindings, Task& task, const float* panels, float* shared) const {
    const int64_t all = source_channels(pass_);
    for (int64_t first = 0; first < all; first += cut_.channels_per_block) {
      const int64_t channels = std::min(cut_.channels_per_block, all - first);
      const Source source = in_place_           ? find_source(bindings, task, first)
                            : cut_.whole_images ? shared_source(task, first, shared)
                                                : load_source(bindings, task, first, channels);
      if (cut_.whole_images)
        task.sound &= panels_.pack_block(bindings, task.group, task.m_first, first, channels, task.block,
                                         task.pack, pads_);
      for (int64_t m = 0; m < task.m_count; m += cut_.width)
        for (size_t phase = 0; phase < cut_.phases.size(); ++phase) {
          Tiles tiles{*this, task, source, cut_.phases[phase], first, channels, {}, {}};
          tiles.tile.b = weights_of(task, panels, phase, m, first, channels);
          tiles.sums = task.sums + static_cast<int64_t>(phase) * sum_floats_ + m;
          tiles.run();
        }
    }
    for (size_t first = 0; first < cut_.phases.size(); first += cut_.w_phases)
      store_phases(bindings, task, first);
  }

  const float* weights_of(const Task& task, const float* panels, size_t phase, int64_t m, int64_t first,
                          int64_t channels) const {
    if (cut_.whole_images) return task.block + panels_.block_start(phase, channels);
    if (!weights_in_place_) return panels_.at(panels, task.group, phase, task.m_first + m, first);
    return panels + task.group * pass_.y_channels_per_group() * pass_.w.strides[0] + task.m_first + m +
           first * k_stride();
  }
  int64_t k_stride() const { return is_forward(pass_) ? pass_.w.strides[1] : pass_.w.strides[0]; }

  // Strips of whole images, for all tasks: [box][group][block of channels], each as load_source() leaves it.
  int64_t strips() const {
    return cut_.grid.count() * pass_.groups * ceil_div(source_channels(pass_), cut_.channels_per_block);
  }

  Task share_strip(const Bindings& bindings, int64_t strip, float* shared, std::byte* scratch) const {
    const int64_t blocks = ceil_div(source_channels(pass_), cut_.channels_per_block);
    const int64_t first = strip % blocks * cut_.channels_per_block;
    Task task = make_task(strip / blocks * cut_.m_blocks, scratch);
    float* out = shared_strip(task, first, shared);
    (cut_.images_inside ? task.turned : task.strip) = out;
    load_source(bindings, task, first, std::min(cut_.channels_per_block, source_channels(pass_) - first));
    return task;
  }

  float* shared_strip(const Task& task, int64_t first, float* shared) const {
    const int64_t floats = cut_.grid.box[0] * cut_.plane(), box = task.box.first[0] / cut_.grid.box[0];
    return shared + ((task.group * cut_.grid.count() + box) * source_channels(pass_) + first) * floats;
  }

  Source shared_source(const Task& task, int64_t first, float* shared) const {
    const int64_t channels = std::min(cut_.channels_per_block, source_channels(pass_) - first);
    Task strip = task;
    strip.strip = strip.turned = shared_strip(task, first, shared);
    return cut_.images_inside ? turned(strip) : in_strip(strip, channels);
  }

  Source find_source(const Bindings& bindings, const Task& task, int64_t first) const {
    const PassTensor& tensor = source_of(pass_);
    const auto& s = tensor.strides;
    const auto* base = static_cast<const float*>(bindings[tensor.operand]);
    const int64_t at = task.box.first[0] * s[0] + (task.group * source_channels(pass_) + first) * s[1] +
                       task.start[0] * s[2] + task.start[1] * s[3] + task.start[2] * s[4];
    return {base + at, s[0], s[1], {s[2], s[3], s[4]}};
  }

  // The strip: [image][channel][place], or [channel][place][image] where images are rows of tiles.
  Source load_source(const Bindings& bindings, Task& task, int64_t first, int64_t channels) const {
    const PassTensor& tensor = source_of(pass_);
    const auto bytes = static_cast<int64_t>(size_of(tensor.dtype));
    StripShape shape{.channels = channels, .start = task.start, .extent = cut_.extent};
    for (size_t axis = 0; axis < 3; ++axis) shape.size[axis] = cut_.phases.front().axes[axis].source_size;
    const int64_t image = channels * cut_.plane(), images = task.box.size[0];
    if (const float* plain = whole_planes(bindings, task, first)) {
      kernels::cpu::transpose(plain, tensor.strides[0], task.turned, images, images, image);
      return turned(task);
    }
    for (int64_t n = 0; n < images; ++n) {
      const int64_t at = (task.box.first[0] + n) * tensor.strides[0] +
                         (task.group * source_channels(pass_) + first) * tensor.strides[1];
      const std::byte* from = static_cast<const std::byte*>(bindings[tensor.operand]) + at * bytes;
      if (partner_ != 0)
        task.sound &= load_cell_strip(tensor, partner_, from, shape, task.strip + n * image);
      else
        load_strip(tensor, pass_.rounding, from, shape, task.strip + n * image);
    }
    if (!cut_.images_inside) return in_strip(task, channels);
    kernels::cpu::transpose(task.strip, image, task.turned, images, images, image);
    return turned(task);
  }

  Source in_strip(const Task& task, int64_t channels) const {
    const int64_t h = cut_.extent[2], d = cut_.extent[1] * h;
    return {task.strip, channels * cut_.plane(), cut_.plane(), {d, h, 1}};
  }

  Source turned(const Task& task) const {
    const int64_t images = task.box.size[0], h = cut_.extent[2] * images, d = cut_.extent[1] * h;
    return {task.turned, 1, cut_.extent[0] * d, {d, h, images}};
  }

  // The source where it is one block [channel][place] of plain FP32 for each image, which can be turned over
  // without a copy; else null.
  const float* whole_planes(const Bindings& bindings, const Task& task, int64_t first) const {
    const PassTensor& tensor = source_of(pass_);
    const auto& s = tensor.strides;
    if (!cut_.images_inside || !is_plain(tensor, pass_.rounding)) return nullptr;
    int64_t stride = 1;
    for (size_t axis = 3; axis-- > 0;) {
      const int64_t size = cut_.phases.front().axes[axis].source_size;
      if (task.start[axis] != 0 || cut_.extent[axis] != size || (size > 1 && s[axis + 2] != stride))
        return nullptr;
      stride *= size;
    }
    if (s[1] != stride) return nullptr;
    return static_cast<const float*>(bindings[tensor.operand]) + task.box.first[0] * s[0] +
           (task.group * source_channels(pass_) + first) * s[1];
  }

  // All tiles of one phase, one block of source channels and one `width` of result channels.
  struct Tiles {
    const DenseGatherStep& step;
    const Task& task;
    const Source& source;
    const DensePhase& phase;
    int64_t first, channels;
    kernels::cpu::TileProduct tile;
    LiveTaps live;
    float* sums = nullptr;

    // Positions of the box that this phase has.
    int64_t count(size_t axis) const {
      return std::clamp<int64_t>(phase.axes[axis].count - task.box.first[axis + 1], 0,
                                 task.box.size[axis + 1]);
    }
    int64_t place(size_t axis, int64_t j) const {
      return ((task.box.first[axis + 1] + j) * phase.axes[axis].source_step - task.start[axis]) *
             source.axis[axis];
    }
    TapRange taps(size_t axis, int64_t j) const {
      if (!step.cut_.skips_dead_taps[axis]) return {0, static_cast<int64_t>(phase.axes[axis].taps.size())};
      return live_range(phase.axes[axis], task.box.first[axis + 1] + j);
    }

    void run() {
      const DenseBlocking& cut = step.cut_;
      tile.width = cut.width;
      tile.offsets = task.offsets;
      tile.outer = channels;
      tile.outer_stride = source.channel;
      tile.b_outer_stride = step.weights_in_place_ ? step.k_stride() : phase.taps * cut.width;
      tile.c_stride = cut.m_block;
      tile.accumulate = first > 0;
      const int64_t images = task.box.size[0];
      for (int64_t n = 0; n < (cut.images_inside ? 1 : images); ++n)
        for (int64_t z = 0; z < count(0); ++z)
          for (int64_t y = 0; y < count(1); ++y) {
            live.ranges[0] = taps(0, z);
            live.ranges[1] = taps(1, y);
            const float* at = source.first + n * source.image + place(0, z) + place(1, y);
            const int64_t position = ((n * task.box.size[1] + z) * task.box.size[2] + y) * task.box.size[3];
            if (cut.images_inside)
              for (int64_t x = 0; x < count(2); ++x)
                run_rows(x, at + place(2, x), images, source.image, (position + x) * images);
            else
              run_row(at, position);
          }
    }

    // Neighbours along W, in runs of equal live taps.
    void run_row(const float* at, int64_t position) {
      const int64_t begin = task.box.first[3], end = begin + count(2);
      for (size_t i = 1; i < phase.w_cuts.size(); ++i) {
        const int64_t x = std::max(phase.w_cuts[i - 1], begin), stop = std::min(phase.w_cuts[i], end);
        if (x >= stop) continue;
        run_rows(x - begin, at + place(2, x - begin), stop - x, phase.axes[2].source_step * source.axis[2],
                 position + x - begin);
      }
    }

    // `rows` results `row_step` apart in the source, from position `position` of the sums on.
    void run_rows(int64_t x, const float* at, int64_t rows, int64_t row_step, int64_t position) {
      list_taps({live.ranges[0], live.ranges[1], taps(2, x)});
      const int64_t stride = step.cut_.m_block;
      if (live.count == 0) {
        for (int64_t i = 0; first == 0 && i < rows; ++i)
          std::fill_n(sums + (position + i) * stride, step.cut_.width, 0.0F);
        return;
      }
      int64_t tiles = ceil_div(rows, kernels::cpu::tile_rows(tile.width, row_step));
      for (; rows > 0; rows -= tile.rows, --tiles) {
        tile.set_rows(at, row_step, ceil_div(rows, tiles));  // even ones: a tile of one row is a slow one
        at += tile.rows * row_step;
        tile.c = sums + position * stride;
        position += tile.rows;
        if (step.partner_ != 0)
          kernels::cpu::bf16_tile_product(tile);
        else
          kernels::cpu::tile_product(tile);
      }
    }

    // Offsets of the live taps, unless they are the last ones again.
    void list_taps(const std::array<TapRange, 3>& ranges) {
      if (live.count >= 0 && ranges == listed) return;
      listed = ranges;
      live.count = 0;
      const auto &d = phase.axes[0].taps, &h = phase.axes[1].taps, &w = phase.axes[2].taps;
      for (int64_t a = ranges[0].first; a < ranges[0].last; ++a)
        for (int64_t b = ranges[1].first; b < ranges[1].last; ++b)
          for (int64_t c = ranges[2].first; c < ranges[2].last; ++c, ++live.count) {
            task.offsets[live.count] = d[static_cast<size_t>(a)].offset * source.axis[0] +
                                       h[static_cast<size_t>(b)].offset * source.axis[1] +
                                       w[static_cast<size_t>(c)].offset * source.axis[2];
            task.b_offsets[live.count] =
                ((a * static_cast<int64_t>(h.size()) + b) * static_cast<int64_t>(w.size()) + c) *
                step.cut_.width;
          }
      tile.inner = live.count;
      const bool in_order = live.count == phase.taps && !step.weights_in_place_;
      tile.b_offsets = in_order ? nullptr : task.b_offsets;
    }
    std::array<TapRange, 3> listed{};
  };

  // Phases that differ along W only fill the same rows of the result, one after the other.
  void store_phases(const Bindings& bindings, const Task& task, size_t first) const {
    const auto& s = pass_.result().strides;
    const auto& [d, h, any_w] = cut_.phases[first].axes;
    const auto& box = task.box;
    const int64_t depth = std::min(box.size[1], d.count - box.first[1]);
    const int64_t height = std::min(box.size[2], h.count - box.first[2]);
    const int64_t images = cut_.images_inside ? box.size[0] : 1;  // between two neighbours of the sums
    // Rows of plain FP32 that follow each other in the sums and in the result are one.
    const bool joined = cut_.w_phases == 1 && h.step == 1 && box.size[3] == any_w.count &&
                        pass_.result().dtype == DType::kF32 && s[4] == 1 && s[3] == any_w.count;
    for (int64_t n = 0; n < box.size[0]; ++n)
      for (int64_t z = 0; z < depth; ++z)
        for (int64_t y = 0; y < (joined ? std::min<int64_t>(height, 1) : height); ++y) {
          const int64_t row = (z * box.size[2] + y) * box.size[3];
          const int64_t position =
              cut_.images_inside ? row * images + n : n * box.size[1] * box.size[2] * box.size[3] + row;
          const int64_t at =
              (box.first[0] + n) * s[0] + (task.group * result_channels(pass_) + task.m_first) * s[1] +
              (d.first + (box.first[1] + z) * d.step) * s[2] + (h.first + (box.first[2] + y) * h.step) * s[3];
          const StoredRow stored{.at = at + box.first[3] * any_w.step * s[4],
                                 .channels = task.m_count,
                                 .sums = task.sums + position * cut_.m_block +
                                         (cut_.w_phases > 1 ? 0 : static_cast<int64_t>(first) * sum_floats_),
                                 .sum_stride = images * cut_.m_block};
          if (cut_.w_phases > 1)
            store_woven(bindings, task, stored, first);
          else
            store_plain(bindings, stored,
                        joined ? height * any_w.count : std::min(box.size[3], any_w.count - box.first[3]),
                        task.row);
        }
  }

  // A row of the result, for all channels of a task.
  struct StoredRow {
    int64_t at, channels;
    const float* sums;
    int64_t sum_stride;  // from one position to the next
  };

  // result[at + m·s1 + x·s4] = sums[x·sum_stride + m]
  void store_plain(const Bindings& bindings, const StoredRow& r, int64_t count, float* row) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    std::byte* base = static_cast<std::byte*>(bindings[result.operand]) + r.at * bytes;
    if (s[1] == 1) {
      for (int64_t x = 0; x < count; ++x)
        store_row(result.dtype, base + x * s[4] * bytes, 1, r.sums + x * r.sum_stride, 1, r.channels);
    } else if (result.dtype == DType::kF32 && s[4] == 1) {
      kernels::cpu::transpose(r.sums, r.sum_stride, reinterpret_cast<float*>(base), s[1], count, r.channels);
    } else {
      kernels::cpu::transpose(r.sums, r.sum_stride, row, count, count, r.channels);
      for (int64_t m = 0; m < r.channels; ++m)
        store_row(result.dtype, base + m * s[1] * bytes, s[4], row + m * count, 1, count);
    }
  }

  // The phases of W fill one row together: they are turned over to [phase][m][position] and woven.
  void store_woven(const Bindings& bindings, const Task& task, const StoredRow& r, size_t first) const {
    const PassTensor& result = pass_.result();
    const auto& s = result.strides;
    const auto bytes = static_cast<int64_t>(size_of(result.dtype));
    const int64_t ways = static_cast<int64_t>(cut_.w_phases), begin = task.box.first[3];
    const int64_t length = cut_.grid.box[3];
    kernels::cpu::WovenRows woven{.in = task.row,
                                  .way_stride = cut_.m_block * length,
                                  .ways = ways,
                                  .in_stride = length,
                                  .out_stride = s[1],
                                  .rows = r.channels};
    woven.end = std::min((begin + task.box.size[3]) * ways, pass_.axes[2].x) - begin * ways;
    for (int64_t way = 0; way < ways; ++way) {
      const int64_t index = static_cast<int64_t>(first) + way;
      const DensePhase& phase = cut_.phases[static_cast<size_t>(index)];
      const int64_t count = std::min(task.box.size[3], phase.axes[2].count - begin);
      float* block = task.row + way * woven.way_stride;
      if (phase.taps == 0)
        std::fill_n(block, r.channels * length, 0.0F);
      else if (count > 0)
        kernels::cpu::transpose(r.sums + index * sum_floats_, r.sum_stride, block, length, count, r.channels);
    }
    std::byte* base = static_cast<std::byte*>(bindings[result.operand]) + r.at * bytes;
    if (result.dtype == DType::kF32 && s[4] == 1) {
      woven.out = reinterpret_cast<float*>(base);
      return kernels::cpu::weave_rows(woven);
    }
    woven.out = task.row + ways * woven.way_stride;
    woven.out_stride = ways * length;
    kernels::cpu::weave_rows(woven);
    for (int64_t m = 0; m < r.channels; ++m)
      store_row(result.dtype, base + m * s[1] * bytes, s[4], woven.out + m * woven.out_stride, 1, woven.end);
  }

  ConvPass pass_;
  int64_t partner_;  // of the source's cells; 0: they are numbers
  DenseBlocking cut_;
  WeightPanels panels_;
  int64_t slots_;
  std::unique_ptr<const Step> fallback_;
  bool in_place_ = false;  // the source
  bool weights_in_place_ = false;
  bool pads_ = false;
  int64_t sum_floats_ = 0;  // of one phase
  size_t sum_bytes_ = 0, strip_bytes_ = 0, turned_bytes_ = 0, row_bytes_ = 0, list_bytes_ = 0;
  size_t shared_bytes_ = 0, block_bytes_ = 0, pack_bytes_ = 0;  // where tasks have whole images
  size_t slot_bytes_ = 0;
};

class DenseGatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.dense_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind == ConvPassKind::kGradWeight)
      return Support::no("computes forward and grad_input only");
    if (const auto reason = unfit_size(*conv)) return Support::no(*reason);
    if (conv->kind == ConvPassKind::kGradInput) {
      // One phase for each residue; a stride far beyond the kernel makes phases that hold next to nothing.
      Checked phases = 1;
      for (const problem::Window& w : conv->axes) phases = phases * std::min(w.stride, w.x);
      if (phases.get().value_or(INT64_MAX) > static_cast<int64_t>(kMostPhases))
        return Support::no("the strides make more than 4096 phases");
      for (const problem::Window& w : conv->axes) phases = phases * w.kernel;
      if (phases.get().value_or(INT64_MAX) > kMostListedTaps)
        return Support::no("the taps of all phases make a list of more than 2^22");
    }
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<DenseGatherStep>(CellPass{.pass = std::get<ConvPass>(pass)},
                                             reference::candidate().make_step(pass));
  }
};

class Bf16GatherCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.bf16_gather"; }
  Support supports(const problem::Pass& pass) const override {
    const Support dense = dense_gather().supports(pass);
    if (!dense.accepted()) return dense;
    if (const auto reason = unfit_for_cells(std::get<ConvPass>(pass))) return Support::no(*reason);
    return dense;
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<DenseGatherStep>(pass_over_cells(std::get<ConvPass>(pass)),
                                             dense_gather().make_step(pass));
  }
};

}  // namespace

const Candidate& bf16_gather() {
  static const Bf16GatherCandidate instance;
  return instance;
}

const Candidate& dense_gather() {
  static const DenseGatherCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// grad_input[q] = Σ_{p : q in window p} grad_output[p] / divisor(p), row by row: kernels/cpu/row_pool.h.
//
// A task is some volumes: one (n, c) where the places of a row lie together (NCHW), one n and some channels
// where the channels of a place do (NHWC). A window that holds its whole volume fills it with one quotient.
#include "engines/cpu/avgpool_rows.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/task_slots.h"
#include "kernels/cpu/row_pool.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::PoolVolumes;
using problem::AvgPoolPass;
using problem::PoolWindow;
using problem::Range;

// Small volumes are handed out together: 64 KiB of results take a core longer than waking another.
constexpr int64_t kElementsPerTask = 16384;
constexpr int64_t kRowElements = 8192;  // of channels side by side: some rows of quotients stay in L2
constexpr int64_t kFewestUnits = 16;    // a vector of AVX-512
constexpr int64_t kMostScratchFloats = int64_t{1} << 26;

int64_t volume_of(const AvgPoolPass& p) { return p.axes[0].x * p.axes[1].x * p.axes[2].x; }

// How the work is cut: `unit` channels at once, `band` rows of the result in a task.
struct PoolCut {
  int64_t unit = 1, blocks = 1;
  int64_t band = 1, bands = 1;
  int64_t quotient_rows = 1;  // at most, for a band
};

PoolCut cut_pool(const AvgPoolPass& p) {
  const auto& [d, h, w] = p.axes;
  const auto& to = p.grad_input.strides;
  PoolCut cut;
  if (p.channels > 1 && p.grad_output.strides[1] == 1 && to[1] == 1 && to[4] != 1)
    cut.unit = std::min(p.channels, std::max(kFewestUnits, kRowElements / w.x / kFewestUnits * kFewestUnits));
  cut.blocks = ceil_div(p.channels, cut.unit);
  // A band divides the windows again that it shares with the next: a few times the kernel keeps that small.
  const int64_t rows = std::max(ceil_div(2 * kElementsPerTask, d.x * w.x * cut.unit), 4 * h.kernel);
  cut.band = std::min(h.x, ceil_div(rows, h.stride) * h.stride);
  cut.bands = ceil_div(h.x, cut.band);
  cut.quotient_rows = d.y * std::min(h.y, (cut.band + h.kernel) / h.stride + 2);
  return cut;
}

// Whether one window holds every place, and the places lie in a line.
bool is_fill(const AvgPoolPass& p) {
  const auto& s = p.grad_input.strides;
  int64_t step = 1;
  for (size_t axis = 3; axis-- > 0;) {
    const PoolWindow& w = p.axes[axis];
    const Range places = w.y == 1 ? pooled_positions(w, 0) : Range{};
    if (places.begin != 0 || places.end != w.x) return false;
    if (w.x > 1 && s[axis + 2] != step) return false;
    step *= w.x;
  }
  return true;
}

// The windows over each place of an axis, and what each of them counts.
struct AxisTables {
  AxisTables(const AvgPoolPass& p, size_t axis) {
    const PoolWindow& w = p.axes[axis];
    const auto count_of = [&](int64_t output) {
      // A window that covers no place is read by nobody; 1 keeps it from dividing by zero.
      return static_cast<float>(std::max<int64_t>(pooled_count(w, output, p.count_include_pad), 1));
    };
    if (p.divisor_override != 0) {
      count = axis == 0 ? static_cast<float>(p.divisor_override) : 1.0F;
    } else if (count_of(0) == count_of(w.y - 1) &&
               (w.y == 1 || count_of(0) == static_cast<float>(w.kernel))) {
      count = count_of(0);  // no window counts more than its kernel, and none less than the first or last
    } else {
      for (int64_t o = 0; o < w.y; ++o) counts.push_back(count_of(o));
    }
  }
  void list_windows(const PoolWindow& w) {
    for (int64_t i = 0; i < w.x; ++i) {
      const Range range = outputs_pooling(w, i);
      begin.push_back(range.begin);
      end.push_back(range.end);
    }
  }
  kernels::cpu::PoolAxis view(const PoolWindow& w) const {
    return {w.x, w.y, begin.data(), end.data(), 0, counts.empty() ? nullptr : counts.data(), count};
  }
  std::vector<int64_t> begin, end;
  std::vector<float> counts;
  float count = 1;
};

class AvgPoolFillStep final : public Step {
 public:
  explicit AvgPoolFillStep(const AvgPoolPass& pass) : pass_(pass) {
    fill_.in_type = pass.grad_output.dtype;
    fill_.out_type = pass.grad_input.dtype;
    fill_.in_stride = pass.grad_output.strides[1];
    fill_.size = volume_of(pass);
    for (size_t axis = 0; axis < 3; ++axis) fill_.divisor *= AxisTables(pass, axis).count;
  }

  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    const auto& from = pass_.grad_output;
    const auto& to = pass_.grad_input;
    const auto* in = static_cast<const std::byte*>(bindings[from.operand]);
    auto* out = static_cast<std::byte*>(bindings[to.operand]);
    const auto in_bytes = static_cast<int64_t>(size_of(from.dtype));
    const auto out_bytes = static_cast<int64_t>(size_of(to.dtype));
    const int64_t grain = std::max<int64_t>(1, kElementsPerTask / fill_.size);
    context.pool->parallel_for(pass_.batch * pass_.channels, grain, [&](int64_t begin, int64_t end) {
      // Volumes of one image, which lie `size` apart, or one alone.
      while (begin < end) {
        const int64_t n = begin / pass_.channels, c = begin % pass_.channels;
        const bool adjacent = to.strides[1] == fill_.size;
        const int64_t count = adjacent ? std::min(end - begin, pass_.channels - c) : 1;
        pool_fill(fill_, in + (n * from.strides[0] + c * from.strides[1]) * in_bytes,
                  out + (n * to.strides[0] + c * to.strides[1]) * out_bytes, count);
        begin += count;
      }
    });
  }

 private:
  AvgPoolPass pass_;
  kernels::cpu::PoolFill fill_;
};

PoolVolumes volumes_of(const AvgPoolPass& pass, const AxisTables (&tables)[3], int64_t unit) {
  const PoolWindow& w = pass.axes[2];
  PoolVolumes result;
  result.depths = tables[0].view(pass.axes[0]);
  result.rows = tables[1].view(pass.axes[1]);
  const kernels::cpu::PoolAxis row = tables[2].view(w);
  result.x = w.x;
  result.y = w.y;
  result.kernel = w.kernel;
  result.stride = w.stride;
  result.pad = w.pad;
  result.counts = row.counts;
  result.count = row.count;
  result.unit = unit;
  const auto& from = pass.grad_output;
  const auto& to = pass.grad_input;
  result.in = {from.dtype, from.strides[2], from.strides[3], from.strides[4]};
  result.out = {to.dtype, to.strides[2], to.strides[3], to.strides[4]};
  result.derive();
  return result;
}

class AvgPoolRowsStep final : public Step {
 public:
  explicit AvgPoolRowsStep(const AvgPoolPass& pass)
      : pass_(pass),
        cut_(cut_pool(pass)),
        slots_(runtime::ThreadPool::instance().threads()),
        tables_{AxisTables(pass, 0), AxisTables(pass, 1), AxisTables(pass, 2)} {
    tables_[0].list_windows(pass.axes[0]);
    tables_[1].list_windows(pass.axes[1]);
    whole_ = volumes_of(pass, tables_, cut_.unit);
    // One band a task, or several volumes that are a band each.
    pieces_ = pass.batch * cut_.blocks * cut_.bands;
    per_task_ = cut_.bands > 1 ? 1 : std::max<int64_t>(1, kElementsPerTask / (volume_of(pass) * cut_.unit));
    tasks_ = ceil_div(pieces_, per_task_);
    slot_bytes_ = part_bytes<float>(whole_.scratch_floats(cut_.quotient_rows));
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(std::min(slots_, tasks_)) * slot_bytes_;
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_tasks(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      auto* scratch = reinterpret_cast<float*>(workspace + static_cast<size_t>(slot) * slot_bytes_);
      int64_t cleared = 0;  // the unit the scratch is laid out for
      for (int64_t i = task * per_task_; i < std::min((task + 1) * per_task_, pieces_); ++i)
        run_piece(bindings, i / cut_.bands, i % cut_.bands, scratch, cleared);
    });
  }

 private:
  void run_piece(const Bindings& bindings, int64_t volume, int64_t band, float* scratch,
                 int64_t& cleared) const {
    PoolVolumes piece = whole_;
    piece.unit = std::min(cut_.unit, pass_.channels - volume % cut_.blocks * cut_.unit);
    piece.pitch = whole_.pitch / whole_.unit * piece.unit;
    const int64_t first = band * cut_.band;
    kernels::cpu::PoolAxis& rows = piece.rows;
    rows.x = std::min(cut_.band, rows.x - first);
    rows.begin += first;
    rows.end += first;
    rows.first = rows.begin[0];
    rows.y = std::max<int64_t>(rows.end[rows.x - 1] - rows.first, 0);
    if (rows.counts != nullptr) rows.counts += rows.first;
    if (piece.unit != cleared) clear_pool_scratch(piece, cut_.quotient_rows, scratch);
    cleared = piece.unit;
    pool_volume(piece, address(bindings, pass_.grad_output, volume, rows.first),
                address(bindings, pass_.grad_input, volume, first), scratch);
  }

  std::byte* address(const Bindings& bindings, const problem::PassTensor& tensor, int64_t volume,
                     int64_t row) const {
    const auto& s = tensor.strides;
    const int64_t at = volume / cut_.blocks * s[0] + volume % cut_.blocks * cut_.unit * s[1] + row * s[3];
    return static_cast<std::byte*>(bindings[tensor.operand]) +
           at * static_cast<int64_t>(size_of(tensor.dtype));
  }

  AvgPoolPass pass_;
  PoolCut cut_;
  int64_t slots_;
  AxisTables tables_[3];
  PoolVolumes whole_;
  int64_t pieces_ = 0, per_task_ = 1, tasks_ = 0;
  size_t slot_bytes_ = 0;
};

class AvgPoolRowsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.avgpool_rows"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* pool = std::get_if<AvgPoolPass>(&pass);
    if (pool == nullptr) return Support::no("computes average pooling only");
    if (const auto reason = unfit_size(*pool)) return Support::no(*reason);
    const PoolCut cut = cut_pool(*pool);
    const PoolWindow& w = pool->axes[2];
    const Checked pitch = (Checked(w.y) + 2 * (w.kernel / w.stride) + 3) * cut.unit;
    if ((pitch * (cut.quotient_rows + 2)).get().value_or(INT64_MAX) > kMostScratchFloats)
      return Support::no("rows of quotients, with zeros at both ends, are more than 2^26 floats");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    const auto& pool = std::get<AvgPoolPass>(pass);
    if (is_fill(pool)) return std::make_unique<AvgPoolFillStep>(pool);
    return std::make_unique<AvgPoolRowsStep>(pool);
  }
};

}  // namespace

const Candidate& avgpool_rows() {
  static const AvgPoolRowsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

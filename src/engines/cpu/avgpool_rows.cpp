// SPDX-License-Identifier: Apache-2.0
// grad_input[d,h,w] = Σ_{pw} sum[pw],   sum[pw] = Σ_{pd,ph} grad_output[pd,ph,pw] / divisor(pd,ph,pw)
//
// A task is one (n, c) volume. For each row of the result the rows of quotients that cover it are added; then
// every place takes the sums of the windows that hold it. Along the row that is a sum at constant offsets for
// each residue of the place by the stride, over a row that has zeros at both ends.
#include "engines/cpu/avgpool_rows.h"

#include <algorithm>
#include <vector>

#include "base/checked.h"
#include "engines/cpu/limits.h"
#include "engines/cpu/rows.h"
#include "engines/cpu/task_slots.h"

namespace retrograd::engines::cpu {
namespace {

using problem::AvgPoolPass;
using problem::PoolWindow;
using problem::Range;

constexpr int64_t kElementsPerTask = 8192;  // small volumes are handed out together

class AvgPoolRowsStep final : public Step {
 public:
  explicit AvgPoolRowsStep(const AvgPoolPass& pass)
      : pass_(pass), slots_(runtime::ThreadPool::instance().threads()), volumes_(pass.batch * pass.channels) {
    const PoolWindow& w = pass.axes[2];
    // Zeros in front of and behind the sums, as many windows as can hold one place.
    margin_ = ceil_div(w.kernel, w.stride) + 1;
    row_bytes_ = part_bytes<float>(w.y + 2 * margin_);
    quotient_bytes_ = part_bytes<float>(pass.axes[0].y * pass.axes[1].y * w.y);
    out_bytes_ = part_bytes<float>(w.x);
    divisor_bytes_ = part_bytes<float>(w.y);
    per_task_ = std::max<int64_t>(1, kElementsPerTask / (pass.axes[0].x * pass.axes[1].x * w.x));
    tasks_ = ceil_div(volumes_, per_task_);
  }

  size_t workspace_bytes() const override {
    return static_cast<size_t>(std::min(slots_, tasks_)) * slot_bytes();
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_tasks(*context.pool, tasks_, slots_, [&](int64_t task, int64_t slot) {
      std::byte* at = workspace + static_cast<size_t>(slot) * slot_bytes();
      Scratch scratch;
      scratch.quotients = reinterpret_cast<float*>(at);
      scratch.sums = reinterpret_cast<float*>(at + quotient_bytes_);
      scratch.out = reinterpret_cast<float*>(at + quotient_bytes_ + row_bytes_);
      scratch.divisors = reinterpret_cast<float*>(at + quotient_bytes_ + row_bytes_ + out_bytes_);
      std::fill_n(scratch.sums, pass_.axes[2].y + 2 * margin_, 0.0F);
      for (int64_t v = task * per_task_; v < std::min((task + 1) * per_task_, volumes_); ++v)
        run_volume(bindings, v / pass_.channels, v % pass_.channels, scratch);
    });
  }

 private:
  struct Scratch {
    float *quotients, *sums, *out, *divisors;
  };
  size_t slot_bytes() const { return quotient_bytes_ + row_bytes_ + out_bytes_ + divisor_bytes_; }

  void run_volume(const Bindings& bindings, int64_t n, int64_t c, const Scratch& scratch) const {
    divide(bindings, n, c, scratch);
    const auto& [ad, ah, aw] = pass_.axes;
    const auto& s = pass_.grad_input.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.grad_input.dtype));
    auto* base = static_cast<std::byte*>(bindings[pass_.grad_input.operand]) + (n * s[0] + c * s[1]) * bytes;
    for (int64_t d = 0; d < ad.x; ++d)
      for (int64_t h = 0; h < ah.x; ++h) {
        add_rows(outputs_pooling(ad, d), outputs_pooling(ah, h), scratch);
        add_along_row(scratch.sums + margin_, scratch.out);
        store_row(pass_.grad_input.dtype, base + (d * s[2] + h * s[3]) * bytes, s[4], scratch.out, 1, aw.x);
      }
  }

  void divide(const Bindings& bindings, int64_t n, int64_t c, const Scratch& scratch) const {
    const auto& [ad, ah, aw] = pass_.axes;
    const auto& s = pass_.grad_output.strides;
    const auto bytes = static_cast<int64_t>(size_of(pass_.grad_output.dtype));
    const auto* base =
        static_cast<const std::byte*>(bindings[pass_.grad_output.operand]) + (n * s[0] + c * s[1]) * bytes;
    float* row = scratch.quotients;
    for (int64_t d = 0; d < ad.y; ++d)
      for (int64_t h = 0; h < ah.y; ++h, row += aw.y) {
        load_row(pass_.grad_output.dtype, OperandRounding::kNone, base + (d * s[2] + h * s[3]) * bytes, s[4],
                 aw.y, row);
        const int64_t outer =
            pooled_count(ad, d, pass_.count_include_pad) * pooled_count(ah, h, pass_.count_include_pad);
        for (int64_t w = 0; w < aw.y; ++w) {
          const int64_t count = outer * pooled_count(aw, w, pass_.count_include_pad);
          // A window that covers no place is read by nobody; 1 keeps it from dividing by zero.
          scratch.divisors[w] = static_cast<float>(pass_.divisor_override != 0 ? pass_.divisor_override
                                                                               : std::max<int64_t>(count, 1));
        }
        for (int64_t w = 0; w < aw.y; ++w) row[w] /= scratch.divisors[w];
      }
  }

  void add_rows(const Range& depths, const Range& heights, const Scratch& scratch) const {
    const int64_t width = pass_.axes[2].y;
    float* sums = scratch.sums + margin_;
    std::fill_n(sums, width, 0.0F);
    for (int64_t d = depths.begin; d < depths.end; ++d)
      for (int64_t h = heights.begin; h < heights.end; ++h) {
        const float* row = scratch.quotients + (d * pass_.axes[1].y + h) * width;
        for (int64_t w = 0; w < width; ++w) sums[w] += row[w];
      }
  }

  // out[r + s·j] = Σ sums[first + j … last + j], windows ⌈(r + pad − kernel + 1)/s⌉ to ⌊(r + pad)/s⌋ at j =
  // 0.
  void add_along_row(const float* sums, float* out) const {
    const PoolWindow& w = pass_.axes[2];
    for (int64_t residue = 0; residue < std::min(w.stride, w.x); ++residue) {
      const int64_t first = ceil_div(residue + w.pad - w.kernel + 1, w.stride);
      const int64_t last = floor_div(residue + w.pad, w.stride);
      const int64_t count = ceil_div(w.x - residue, w.stride);
      // Places whose windows all exist, or lie in the margins, which hold zeros.
      const int64_t safe = std::clamp<int64_t>(w.y + margin_ - 1 - last + 1, 0, count);
      float* place = out + residue;
      for (int64_t j = 0; j < safe; ++j) place[j * w.stride] = first <= last ? sums[first + j] : 0.0F;
      for (int64_t k = first + 1; k <= last; ++k)
        for (int64_t j = 0; j < safe; ++j) place[j * w.stride] += sums[k + j];
      for (int64_t j = safe; j < count; ++j) {
        float sum = 0;
        for (int64_t k = first + j; k <= std::min(last + j, w.y - 1); ++k) sum += sums[k];
        place[j * w.stride] = sum;
      }
    }
  }

  AvgPoolPass pass_;
  int64_t slots_;
  int64_t volumes_;
  int64_t per_task_ = 1, tasks_ = 0;
  int64_t margin_ = 0;
  size_t row_bytes_ = 0, quotient_bytes_ = 0, out_bytes_ = 0, divisor_bytes_ = 0;
};

class AvgPoolRowsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.avgpool_rows"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* pool = std::get_if<AvgPoolPass>(&pass);
    if (pool == nullptr) return Support::no("computes average pooling only");
    if (const auto reason = unfit_size(*pool)) return Support::no(*reason);
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<AvgPoolRowsStep>(std::get<AvgPoolPass>(pass));
  }
};

}  // namespace

const Candidate& avgpool_rows() {
  static const AvgPoolRowsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

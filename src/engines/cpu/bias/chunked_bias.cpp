// SPDX-License-Identifier: Apache-2.0
// grad_bias[c]  = Σ_k partial[c][k]
// partial[c][k] = Σ_{(n,d,h,w) in chunk k} grad_output[n,c,d,h,w]
//
// A chunk is a contiguous range of positions. In NCHW a task adds one chunk of one channel, row by row. Where
// the channels of a position lie together (NHWC, or planes of one position) a task adds a chunk for all
// channels side by side; planes of a few positions are treated as that many channels. The partial sums, in
// double, are the workspace; they are added in the order of the chunks.
#include "engines/cpu/bias/chunked_bias.h"

#include <algorithm>

#include "base/checked.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/bias/row_reduce.h"
#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {
namespace {

using problem::BiasPass;

// A core reads this many in about 5 µs, what it costs to wake another.
constexpr int64_t kElementsPerTask = 32768;
// With this many channels the threads of any machine we know have enough to do
// without cutting.
constexpr int64_t kEnoughChannels = 256;
constexpr int64_t kMostChunks = 64;        // of a channel: the workspace stays under 128 KiB
constexpr int64_t kMostColumnChunks = 16;  // each has a sum for every channel
constexpr int64_t kMostSums = int64_t{1} << 24;
// Rows shorter than half a vector of AVX-512 are added side by side, where
// there are enough of them.
constexpr int64_t kShortRow = 16;
constexpr int64_t kManyRows = 8;

class ChunkedBiasStep final : public Step {
 public:
  explicit ChunkedBiasStep(const BiasPass& pass)
      : pass_(pass), plan_(plan_bias(pass)), bytes_(static_cast<int64_t>(size_of(pass.grad_output.dtype))) {}

  size_t workspace_bytes() const override { return static_cast<size_t>(plan_.sums()) * sizeof(double); }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* partial = reinterpret_cast<double*>(workspace);
    const auto* source = static_cast<const std::byte*>(bindings[pass_.grad_output.operand]);
    context.pool->parallel_for(plan_.tasks, plan_.tasks_at_once, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) run_task(source, task, partial);
    });
    if (plan_.by_columns) {
      for (int64_t k = 1; k < plan_.chunks; ++k)
        for (int64_t c = 0; c < plan_.columns; ++c) partial[c] += partial[k * plan_.columns + c];
    }
    const int64_t terms = plan_.by_columns ? plan_.per_channel : plan_.chunks;
    auto* result = static_cast<std::byte*>(bindings[pass_.grad_bias.operand]);
    const int64_t step = pass_.grad_bias.strides[1] * static_cast<int64_t>(size_of(pass_.grad_bias.dtype));
    for (int64_t c = 0; c < pass_.channels; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < terms; ++k) sum += partial[c * terms + k];
      store_from_f32(pass_.grad_bias.dtype, result + c * step, static_cast<float>(sum));
    }
  }

 private:
  void run_task(const std::byte* source, int64_t task, double* partial) const {
    const int64_t chunk = task % plan_.chunks, channel = task / plan_.chunks;
    const int64_t begin = chunk * plan_.chunk, end = std::min(begin + plan_.chunk, plan_.positions);
    if (plan_.by_columns) {
      double* sums = partial + chunk * plan_.columns;
      std::fill_n(sums, plan_.columns, 0.0);
      add_columns(source, begin, end, sums);
    } else {
      partial[task] = sum_rows(source + channel * pass_.grad_output.strides[1] * bytes_, begin, end);
    }
  }

  // Calls body(address, count, rows) for pieces of [begin, end): `count`
  // positions along the last axis, in as many rows along the axis before it.
  template <class Body>
  void for_each_piece(const std::byte* source, int64_t begin, int64_t end, const Body& body) const {
    const auto& last = plan_.axes[static_cast<size_t>(plan_.rank - 1)];
    for (int64_t at = begin; at < end;) {
      int64_t offset = 0, index = at, above = 0;
      for (int axis = plan_.rank - 1; axis >= 0; --axis) {
        const auto& [size, stride] = plan_.axes[static_cast<size_t>(axis)];
        offset += index % size * stride;
        if (axis == plan_.rank - 2) above = size - index % size;
        index /= size;
      }
      const int64_t column = at % last.size;
      const bool whole = column == 0 && end - at >= last.size;
      const int64_t count = whole ? last.size : std::min(last.size - column, end - at);
      const int64_t rows = whole ? std::clamp<int64_t>(above, 1, (end - at) / last.size) : 1;
      body(source + offset * bytes_, count, rows);
      at += count * rows;
    }
  }

  void add_columns(const std::byte* source, int64_t begin, int64_t end, double* sums) const {
    const auto& last = plan_.axes[static_cast<size_t>(plan_.rank - 1)];
    for_each_piece(source, begin, end, [&](const std::byte* at, int64_t count, int64_t rows) {
      for (int64_t r = 0; r < rows; ++r)
        kernels::cpu::add_columns(pass_.grad_output.dtype, at + r * row_stride() * bytes_, last.stride, count,
                                  plan_.columns, sums);
    });
  }

  double sum_rows(const std::byte* source, int64_t begin, int64_t end) const {
    const auto& last = plan_.axes[static_cast<size_t>(plan_.rank - 1)];
    double sum = 0;
    for_each_piece(source, begin, end, [&](const std::byte* at, int64_t count, int64_t rows) {
      if (last.stride == 1) {
        sum += kernels::cpu::sum_rows(pass_.grad_output.dtype, at, row_stride(), rows, count);
      } else {
        for (int64_t r = 0; r < rows; ++r) sum += sum_strided(at + r * row_stride() * bytes_, count);
      }
    });
    return sum;
  }

  double sum_strided(const std::byte* row, int64_t count) const {
    constexpr int64_t kBuffer = 1024;
    std::array<float, kBuffer> values;
    const int64_t stride = plan_.axes[static_cast<size_t>(plan_.rank - 1)].stride;
    double sum = 0;
    for (int64_t i = 0; i < count; i += kBuffer) {
      const int64_t part = std::min(kBuffer, count - i);
      load_row(pass_.grad_output.dtype, OperandRounding::kNone, row + i * stride * bytes_, stride, part,
               values.data());
      sum +=
          kernels::cpu::sum_rows(DType::kF32, reinterpret_cast<const std::byte*>(values.data()), 0, 1, part);
    }
    return sum;
  }

  int64_t row_stride() const {
    return plan_.rank > 1 ? plan_.axes[static_cast<size_t>(plan_.rank - 2)].stride : 0;
  }

  BiasPass pass_;
  BiasPlan plan_;
  int64_t bytes_;
};

class ChunkedBiasCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.chunked_bias"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* bias = std::get_if<BiasPass>(&pass);
    if (bias == nullptr) return Support::no("computes grad_bias only");
    if (bias->channels == 0 || bias->reduction_length() == 0) return Support::no("there is nothing to add");
    if (bias->channels > kMostSums / kShortRow / kMostColumnChunks)
      return Support::no("{} channels make too many partial sums", bias->channels);
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<ChunkedBiasStep>(std::get<BiasPass>(pass));
  }
};

void list_axes(const BiasPass& pass, BiasPlan& plan) {
  const auto& s = pass.grad_output.strides;
  const std::array<BiasPlan::Axis, 4> all{
      {{pass.batch, s[0]}, {pass.spatial[0], s[2]}, {pass.spatial[1], s[3]}, {pass.spatial[2], s[4]}}};
  for (const BiasPlan::Axis& axis : all) {
    if (axis.size == 1) continue;
    plan.positions *= axis.size;
    BiasPlan::Axis* before = plan.rank > 0 ? &plan.axes[static_cast<size_t>(plan.rank - 1)] : nullptr;
    if (before != nullptr && checked_mul(axis.size, axis.stride) == before->stride) {
      *before = {before->size * axis.size, axis.stride};
    } else {
      plan.axes[static_cast<size_t>(plan.rank++)] = axis;
    }
  }
  if (plan.rank == 0) plan.axes[static_cast<size_t>(plan.rank++)] = {1, 0};
}

void choose_columns(const BiasPass& pass, BiasPlan& plan) {
  const BiasPlan::Axis& last = plan.axes[static_cast<size_t>(plan.rank - 1)];
  const int64_t channel_stride = pass.grad_output.strides[1];
  plan.columns = pass.channels;
  if (channel_stride == 1 && last.stride != 1) {
    plan.by_columns = true;
  } else if (last.stride == 1 && channel_stride == last.size && last.size <= kShortRow &&
             plan.positions / last.size >= kManyRows) {
    plan.by_columns = true;
    plan.per_channel = last.size;
    plan.columns *= last.size;
    plan.positions /= last.size;
    --plan.rank;
  }
}

}  // namespace

BiasPlan plan_bias(const BiasPass& pass) {
  BiasPlan plan;
  list_axes(pass, plan);
  choose_columns(pass, plan);
  if (plan.by_columns) {
    plan.chunk =
        std::max(ceil_div(kElementsPerTask, plan.columns), ceil_div(plan.positions, kMostColumnChunks));
    plan.chunks = plan.tasks = ceil_div(plan.positions, plan.chunk);
    return plan;
  }
  plan.chunk = pass.channels >= kEnoughChannels
                   ? plan.positions
                   : std::max(kElementsPerTask, ceil_div(plan.positions, kMostChunks));
  plan.chunks = ceil_div(plan.positions, plan.chunk);
  plan.tasks = pass.channels * plan.chunks;
  plan.tasks_at_once = std::max<int64_t>(1, kElementsPerTask / std::min(plan.chunk, plan.positions));
  return plan;
}

const Candidate& chunked_bias() {
  static const ChunkedBiasCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// grad_bias[c] = Σ_k partial[c][k],   partial[c][k] = Σ_{(n,d,h,w) in chunk k} grad_output[n,c,d,h,w]
//
// One thread a channel, as the reference has it, leaves threads idle when there are few channels: a stem's or
// a detection head's bias. Here each (channel, chunk) is one task; the partial sums, in double, are the
// workspace; they are added in the order of the chunks.
#include "engines/cpu/chunked_bias.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "runtime/thread_pool.h"

namespace retrograd::engines::cpu {
namespace {

using problem::BiasPass;

// About 10 µs of work at one element a nanosecond: below it, handing a chunk to a thread costs more than it
// gains.
constexpr int64_t kElementsPerChunk = 8192;
// With this many channels the threads of any machine we know have enough to do without cutting.
constexpr int64_t kEnoughChannels = 256;

class ChunkedBiasStep final : public Step {
 public:
  explicit ChunkedBiasStep(const BiasPass& pass) : pass_(pass), cut_(cut_bias(pass)) {}

  size_t workspace_bytes() const override {
    return static_cast<size_t>(pass_.channels * cut_.chunks) * sizeof(double);
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    auto* partial = reinterpret_cast<double*>(workspace);
    const auto* source = static_cast<const std::byte*>(bindings[pass_.grad_output.operand]);
    context.pool->parallel_for(pass_.channels * cut_.chunks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task)
        partial[task] = sum_chunk(source, task / cut_.chunks, task % cut_.chunks);
    });
    auto* result = static_cast<std::byte*>(bindings[pass_.grad_bias.operand]);
    const int64_t step = pass_.grad_bias.strides[1] * static_cast<int64_t>(size_of(pass_.grad_bias.dtype));
    for (int64_t c = 0; c < pass_.channels; ++c) {
      double sum = 0;
      for (int64_t k = 0; k < cut_.chunks; ++k) sum += partial[c * cut_.chunks + k];
      store_from_f32(pass_.grad_bias.dtype, result + c * step, static_cast<float>(sum));
    }
  }

 private:
  double sum_chunk(const std::byte* source, int64_t channel, int64_t chunk) const {
    const auto& s = pass_.grad_output.strides;
    const auto& [depth, height, width] = pass_.spatial;
    const auto bytes = static_cast<int64_t>(size_of(pass_.grad_output.dtype));
    const int64_t end = std::min(cut_.length, (chunk + 1) * cut_.chunk);
    double sum = 0;
    for (int64_t at = chunk * cut_.chunk; at < end;) {
      const int64_t row = at / width, column = at % width;
      const int64_t n = row / (depth * height), d = row / height % depth, h = row % height;
      const int64_t count = std::min(width - column, end - at);
      const std::byte* element =
          source + (n * s[0] + channel * s[1] + d * s[2] + h * s[3] + column * s[4]) * bytes;
      for (int64_t i = 0; i < count; ++i)
        sum += load_as_f32(pass_.grad_output.dtype, element + i * s[4] * bytes);
      at += count;
    }
    return sum;
  }

  BiasPass pass_;
  BiasChunks cut_;
};

class ChunkedBiasCandidate final : public Candidate {
 public:
  const char* name() const override { return "cpu.chunked_bias"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* bias = std::get_if<BiasPass>(&pass);
    if (bias == nullptr) return Support::no("computes grad_bias only");
    if (bias->channels >= kEnoughChannels)
      return Support::no(fmt::format("{} channels keep all threads busy without cutting", bias->channels));
    if (cut_bias(*bias).chunks < 2)
      return Support::no(fmt::format("{} elements a channel make one chunk only", bias->reduction_length()));
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    return std::make_unique<ChunkedBiasStep>(std::get<BiasPass>(pass));
  }
};

}  // namespace

BiasChunks cut_bias(const BiasPass& pass) {
  BiasChunks cut;
  cut.length = pass.reduction_length();
  // At most 64 chunks a channel: the workspace stays under 128 KiB whatever the tensor.
  cut.chunk = std::max(kElementsPerChunk, ceil_div(cut.length, 64));
  cut.chunks = ceil_div(cut.length, cut.chunk);
  return cut;
}

const Candidate& chunked_bias() {
  static const ChunkedBiasCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// result[q] = Σ_k Σ_s source[k, q + offset + s] · g[k, s],  s in 3 × 3; g is the weight, turned over for
// grad_input.
//
// A block of tiles of 4 × 4 results: the 6 × 6 tiles of its source channels are transformed, one vector of
// channels at a time, to data[36][tile][k]; then, for `width` result channels at a time, 36 products
// data · kernels are made with the tile product of the direct engines, and transformed back. Two orders:
//
//   kept kernels   All weights are transformed first. A task is a block whose data stay in L2; the kernels
//                  stream through once a block, from L2 or L3.
//   many kernels   From some 180 channels on the kernels, four times the weights, would push everything else
//                  out of the caches. The data of a chunk of larger blocks are transformed first, and stay in
//                  L3. A task is a block and `width` result channels, and transforms its weights itself. At
//                  256 channels and 14 x 14 this takes 4.5 ms where kept kernels take 5.5.
#include "engines/cpu/winograd/winograd_gather.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/checked.h"
#include "engines/cpu/boxes.h"
#include "engines/cpu/candidate.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/task_slots.h"
#include "engines/cpu/winograd/winograd_fit.h"
#include "engines/cpu/winograd/winograd_gather_parts.h"
#include "kernels/cpu/winograd/winograd.h"

namespace retrograd::engines::cpu {
namespace {

using kernels::cpu::kWinogradPoints;
using problem::ConvPass;

constexpr int64_t kKeptKernelFloats = 1280 * 1024;
constexpr int64_t kKernelPiece = 16;  // channels whose weights one task transforms beforehand
constexpr int64_t kDataFloatsInL2 = 160 * 1024;
constexpr int64_t kFewestTiles = 12;
constexpr int64_t kWantedTasks = 16;
// Where kernels are not kept.
constexpr int64_t kTilesPerTask = 96;
constexpr int64_t kTermsAtOnce =
    256;  // 64, which would fit L2, is a tenth slower: sums are loaded more often
constexpr int64_t kDataFloatsInL3 = 3 * 1024 * 1024;

int64_t depth_taps(const WinogradGatherCut& cut) { return static_cast<int64_t>(cut.depth.taps.size()); }

std::string describe_cut(const ConvPass& pass, const WinogradGatherCut& cut, const char* kernels) {
  return fmt::format("F(4x4, 3x3), {} blocks of {}x{}x{} tiles, {}", pass.groups * cut.blocks(),
                     cut.block_planes, cut.rows, cut.columns, kernels);
}

class KeptKernelsStep final : public Step {
 public:
  KeptKernelsStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass), parts_(pass, vectors_of(machine)), slots_{machine.cpu.threads} {
    terms_ = depth_taps(parts_.cut()) * source_channels(pass);
    kernels_ = slots_.shared.add<float>(pass.groups * parts_.m_blocks() * parts_.kernel_floats(terms_));
    data_ = slots_.own.add<float>(parts_.data_floats());
    products_ = slots_.own.add<float>(parts_.product_floats());
    strip_ = slots_.own.add<float>(parts_.strip_floats());
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  std::string describe() const override {
    return describe_cut(pass_, parts_.cut(), "kernels kept for all of them");
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    float* const kernels = kernels_.in(workspace);
    const int64_t all = source_channels(pass_), pieces = ceil_div(all, kKernelPiece);
    const int64_t per_block = depth_taps(parts_.cut()) * pieces;
    run_tasks(*context.pool, pass_.groups * parts_.m_blocks() * per_block, slots_.count,
              [&](int64_t task, int64_t slot) {
                const int64_t block = task / per_block, tap = task % per_block / pieces;
                const int64_t k = task % pieces * kKernelPiece;
                parts_.transform_weights(
                    bindings, block / parts_.m_blocks(), block % parts_.m_blocks(), tap, k,
                    std::min(kKernelPiece, all - k), strip_.in(slots_.at(workspace, slot)),
                    kernels + block * parts_.kernel_floats(terms_), terms_, tap * all + k);
              });
    run_tasks(*context.pool, pass_.groups * parts_.cut().blocks(), slots_.count,
              [&](int64_t task, int64_t slot) {
                run_block(bindings, parts_.block(task), kernels, slots_.at(workspace, slot));
              });
  }

 private:
  void run_block(const Bindings& bindings, const WinogradBlock& b, const float* kernels,
                 std::byte* memory) const {
    float *const data = data_.in(memory), *const products = products_.in(memory),
                 *const strip = strip_.in(memory);
    const int64_t all = source_channels(pass_);
    for (int64_t c = 0; c < all; c += parts_.lanes()) parts_.transform_data(bindings, b, c, strip, data);
    for (int64_t m = 0; m < parts_.m_blocks(); ++m) {
      const float* panel = kernels + (b.group * parts_.m_blocks() + m) * parts_.kernel_floats(terms_) +
                           b.first_tap * all * parts_.width();
      parts_.multiply(b, {0, b.taps, 0, all}, data, panel, terms_, false, products);
      parts_.store_result(bindings, b, m, products, strip);
    }
  }

  ConvPass pass_;
  WinogradGatherParts parts_;
  int64_t terms_ = 0;
  Slots slots_;
  Part<float> kernels_, data_, products_, strip_;
};

class ManyKernelsStep final : public Step {
 public:
  ManyKernelsStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass), parts_(pass, vectors_of(machine)), slots_{machine.cpu.threads} {
    for (int64_t block = 0; block < parts_.cut().blocks_per_chunk; ++block)
      data_.push_back(slots_.shared.add<float>(parts_.data_floats()));
    kernels_ = slots_.own.add<float>(parts_.kernel_floats(parts_.cut().terms_at_once));
    products_ = slots_.own.add<float>(parts_.product_floats());
    strip_ = slots_.own.add<float>(parts_.strip_floats());
  }

  size_t workspace_bytes() const override { return slots_.bytes(); }

  std::string describe() const override {
    return describe_cut(pass_, parts_.cut(), "kernels made for each of them");
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const int64_t per_chunk = parts_.cut().blocks_per_chunk, blocks = pass_.groups * parts_.cut().blocks();
    const auto data = [&](int64_t block) { return data_[static_cast<size_t>(block)].in(workspace); };
    const int64_t vectors = ceil_div(source_channels(pass_), parts_.lanes());
    for (int64_t first = 0; first < blocks; first += per_chunk) {
      const int64_t now = std::min(per_chunk, blocks - first);
      run_tasks(*context.pool, now * vectors, slots_.count, [&](int64_t task, int64_t slot) {
        parts_.transform_data(bindings, parts_.block(first + task / vectors), task % vectors * parts_.lanes(),
                              strip_.in(slots_.at(workspace, slot)), data(task / vectors));
      });
      run_tasks(*context.pool, now * parts_.m_blocks(), slots_.count, [&](int64_t task, int64_t slot) {
        const int64_t block = task / parts_.m_blocks();
        run_block(bindings, parts_.block(first + block), task % parts_.m_blocks(), data(block),
                  slots_.at(workspace, slot));
      });
    }
  }

 private:
  void run_block(const Bindings& bindings, const WinogradBlock& b, int64_t m, const float* data,
                 std::byte* memory) const {
    float *const kernels = kernels_.in(memory), *const products = products_.in(memory),
                 *const strip = strip_.in(memory);
    const int64_t all = source_channels(pass_), at_once = parts_.cut().terms_at_once;
    bool accumulate = false;
    for (int64_t tap = 0; tap < b.taps; ++tap)
      for (int64_t k = 0; k < all; k += at_once) {
        const int64_t count = std::min(at_once, all - k);
        parts_.transform_weights(bindings, b.group, m, b.first_tap + tap, k, count, strip, kernels, at_once,
                                 0);
        parts_.multiply(b, {tap, 1, k, count}, data, kernels, at_once, accumulate, products);
        accumulate = true;
      }
    if (b.taps == 0) parts_.multiply(b, {0, 0, 0, 0}, data, kernels, at_once, false, products);
    parts_.store_result(bindings, b, m, products, strip);
  }

  ConvPass pass_;
  WinogradGatherParts parts_;
  Slots slots_;
  std::vector<Part<float>> data_;  // of each block of a chunk
  Part<float> kernels_, products_, strip_;
};

std::optional<Reason> unfit(const ConvPass& conv, const Machine& /*machine*/) {
  if (auto reason = winograd_unfit(conv)) return reason;
  if (!is_forward(conv) && conv.axes[0].stride != 1) return "the stride along D is not 1";
  const Checked tile = Checked(kWinogradPoints) * conv.axes[0].kernel * source_channels(conv);
  if (tile.get().value_or(INT64_MAX) > kDataFloatsInL3 / kFewestTiles)
    return "the transformed tiles of a block exceed the cache";
  return std::nullopt;
}

std::unique_ptr<const Step> step(const ConvPass& conv, const Machine& machine) {
  if (cut_winograd_gather(conv, vectors_of(machine).tile_width()).keeps_kernels)
    return std::make_unique<KeptKernelsStep>(conv, machine);
  return std::make_unique<ManyKernelsStep>(conv, machine);
}

}  // namespace

WinogradGatherCut cut_winograd_gather(const ConvPass& p, int64_t tile_width) {
  WinogradGatherCut cut;
  cut.depth = is_forward(p) ? forward_phase(p.axes[0]) : grad_input_phases(p.axes[0]).front();
  cut.planes = p.batch * cut.depth.count;
  cut.tiles_h = ceil_div(is_forward(p) ? p.axes[1].y : p.axes[1].x, 4);
  cut.tiles_w = ceil_div(is_forward(p) ? p.axes[2].y : p.axes[2].x, 4);
  const int64_t terms = source_channels(p) * depth_taps(cut);
  const int64_t m_padded = ceil_div(result_channels(p), tile_width) * tile_width;
  cut.keeps_kernels = kWinogradPoints * terms <= kKeptKernelFloats / m_padded;
  const int64_t all = p.groups * cut.planes * cut.tiles_h * cut.tiles_w;
  const int64_t in_l2 = kDataFloatsInL2 / (kWinogradPoints * terms);
  const int64_t in_l3 = kDataFloatsInL3 / (kWinogradPoints * terms);
  const int64_t wanted = cut.keeps_kernels
                             ? std::max(kFewestTiles, std::min(in_l2, ceil_div(all, kWantedTasks)))
                             : std::max(kFewestTiles, std::min(in_l3, kTilesPerTask));
  const auto cut_axis = [](int64_t total, int64_t most, int64_t& size, int64_t& blocks) {
    std::tie(size, blocks) = cut_evenly(total, std::clamp<int64_t>(most, 1, total));
  };
  cut_axis(cut.tiles_w, wanted, cut.columns, cut.blocks_w);
  cut_axis(cut.tiles_h, wanted / cut.columns, cut.rows, cut.blocks_h);
  const bool whole = cut.blocks_w == 1 && cut.blocks_h == 1;
  cut_axis(cut.planes, whole ? wanted / (cut.rows * cut.columns) : 1, cut.block_planes, cut.blocks_p);
  cut.terms_at_once = std::min(kTermsAtOnce, source_channels(p));
  cut.blocks_per_chunk = std::clamp<int64_t>(in_l3 / cut.block_tiles(), 1, p.groups * cut.blocks());
  return cut;
}

const Candidate& winograd_gather() {
  static const ConvCandidate instance({"cpu.winograd_gather", kGathers, unfit, nullptr, step, true});
  return instance;
}

}  // namespace retrograd::engines::cpu

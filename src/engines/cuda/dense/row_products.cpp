// SPDX-License-Identifier: Apache-2.0
// What the products of rows take.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/row_steps.h"
#include "engines/cuda/implementations.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kMostElements = int64_t{1} << 31;
constexpr int64_t kFewestChannels = 16;  // of a group in TF32

// Three TF32 products leave out up to 2^-21 of a product, which is within the error of FP32 only in a sum.
constexpr int64_t kFewestTerms = 8;
int64_t terms_of(const ConvPass& p) {
  int64_t places = p.batch, taps = 1;
  for (const problem::Window& w : p.axes) {
    places *= w.y;
    taps *= w.kernel;
  }
  if (p.kind == ConvPassKind::kGradWeight) return places;
  return taps * (p.kind == ConvPassKind::kForward ? p.x_channels_per_group() : p.y_channels_per_group());
}

// What the kernels count with 32 bits, filled up rows included.
bool is_too_large(const ConvPass& p) {
  Checked x = Checked(p.batch) * p.groups * (p.x_channels_per_group() + 7),
          y = Checked(p.batch) * p.groups * (p.y_channels_per_group() + 7);
  Checked weights = Checked(p.groups) * (p.x_channels_per_group() + 7) * (p.y_channels_per_group() + 7);
  for (const problem::Window& w : p.axes) {
    for (int64_t size : {w.x, w.y, w.kernel, w.stride, w.dilation, w.pad_lo < 0 ? -w.pad_lo : w.pad_lo})
      if (size >= int64_t{1} << 29) return true;
    if ((w.y - 1) * w.stride + (w.kernel - 1) * w.dilation + w.x >= int64_t{1} << 29) return true;
    x = x * w.x;
    y = y * w.y;
    weights = weights * w.kernel;
  }
  // Elements may be more than 2^31, places may not; a bound on elements of 2^40 keeps byte counts harmless.
  for (const Checked& count : {x, y, weights})
    if (!count.get() || *count.get() >= int64_t{1} << 40) return true;
  const int64_t x_places = p.batch * p.axes[0].x * p.axes[1].x * p.axes[2].x;
  const int64_t y_places = p.batch * p.axes[0].y * p.axes[1].y * p.axes[2].y;
  int64_t taps = p.axes[0].kernel * p.axes[1].kernel * p.axes[2].kernel;
  const int64_t chunks = (std::max(p.x_channels_per_group(), p.y_channels_per_group()) + 3) / 4;
  return x_places >= kMostElements || y_places >= kMostElements || taps * chunks >= kMostElements / 4 ||
         p.x_channels > 1 << 24 || p.y_channels > 1 << 24 || p.groups > 65535;
}

class RowProductsCandidate final : public Candidate {
 public:
  explicit RowProductsCandidate(bool in_tf32) : in_tf32_(in_tf32) {}
  const char* name() const override { return in_tf32_ ? "cuda.tf32_products" : "cuda.row_products"; }
  bool reduces_precision() const override { return in_tf32_; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) return Support::no("convolutions only");
    if (conv->batch == 0 || conv->x_channels == 0 || conv->y_channels == 0)
      return Support::no("nothing to add up");
    for (const problem::Window& w : conv->axes)
      if (w.x == 0 || w.y == 0 || w.kernel == 0) return Support::no("nothing to add up");
    if (conv->groups > 1 && conv->x_channels == conv->groups && conv->y_channels == conv->groups)
      return Support::no("one channel a group on both sides: tiles would be almost empty");
    if (is_too_large(*conv)) return Support::no("sizes beyond 32-bit counts of places, taps or channels");
    if (in_tf32_ && (!conv->hf32_allowed || row_type_of(*conv) != RowType::kF32))
      return Support::no("f32 operands must not be rounded, or are not there");
    if (in_tf32_ && conv->groups > 1 &&
        std::min(conv->x_channels_per_group(), conv->y_channels_per_group()) < kFewestChannels)
      return Support::no(fmt::format("groups of fewer than {} channels fill few tiles", kFewestChannels));
    if (!in_tf32_ && row_type_of(*conv) == RowType::kF32 && terms_of(*conv) < kFewestTerms)
      return Support::no(
          fmt::format("sums of {} products in f32 would not be exact enough", terms_of(*conv)));
    if (conv->kind == ConvPassKind::kGradInput && !has_gather_way(*conv))
      return Support::no("more than 64 residues of the strides, with windows that overlap");
    return Support::yes();
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    return row_effort(pass, in_tf32_, machine);
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass, const Machine& machine) const override {
    return make_row_step(std::get<ConvPass>(pass), in_tf32_, machine);
  }

 private:
  bool in_tf32_;
};

}  // namespace

const Candidate& row_products() {
  static const RowProductsCandidate instance(false);
  return instance;
}
const Candidate& tf32_products() {
  static const RowProductsCandidate instance(true);
  return instance;
}

}  // namespace retrograd::engines::cuda

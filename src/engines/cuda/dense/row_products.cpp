// SPDX-License-Identifier: Apache-2.0
// Any convolution as matrix products over rows of channels (NHWC, padded): copies of operands to rows where
// they are needed, then the product.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/dense/product_axes.h"
#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/dense/row_weight_step.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using kernels::cuda::ProductMath;
using kernels::cuda::RowType;

constexpr int64_t kFewestChannels = 16;                 // of a group in TF32
constexpr double kPacedTflops[] = {247, 247, 123, 41};  // tile_tflops() there of each ProductMath, of weights

constexpr double kWeights = 2.5;  // elements of a source that a weight takes as long as: it is turned over

class GatherStep final : public Step {
 public:
  GatherStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        forward_(is_forward(pass)),
        type_(row_type(pass, source(), pass.w)),
        math_(math_of(type_, pass.rounding)),
        operand_(row_operand(pass, source(), forward_ ? x_sizes(pass) : y_sizes(pass), type_)),
        way_(gather_way(pass, operand_, type_, math_, machine)),
        rows_(pass, type_, rows_bytes(forward_), rows_bytes(!forward_)) {
    if (way_.patches)
      operand_ = {false, patch_row(pass, type_), room_for(patch_elements(pass, type_), type_)};
    product_.conv = shape_of(pass);
    product_.forward = forward_;
    const std::vector<ProductAxes> taken = way_.patches ? product_axes(pass) : way_.products;
    product_.padded = is_folded() ? !folded_covers_x(pass)
                                  : std::any_of(taken.begin(), taken.end(),
                                                [](const ProductAxes& axes) { return leaves_source(axes); });
    product_.warpgroups = way_.warpgroups;
    product_.patches = way_.patches;
    product_.multiprocessors = processors_of(machine);
    product_.columns = way_.columns;
    product_.math = math_;
    product_.parts = way_.warpgroups ? 1 : way_.parts;
    if (way_.cleared) cleared_ = size_in_bytes(result_sizes(pass), pass.result().dtype);
  }
  WantsAligned wants_aligned() const {
    return {.x = forward_ && operand_.in_place, .y = !forward_ && operand_.in_place, .w = false};
  }
  Conversions conversions() const override { return rows_.all; }
  size_t workspace_bytes() const override {
    return operand_.bytes + weight_bytes() + static_cast<size_t>(cut().partial_floats) * sizeof(float);
  }
  std::string describe() const override {
    const size_t count = way_.products.size();
    return fmt::format("{}{} rows{}, {}{}, multiplied as {}", tiles(), retrograd::name_of(dtype_of(type_)),
                       operand_.in_place ? " in place" : "",
                       way_.patches  ? std::string("x as patches")
                       : is_folded() ? std::string("taps folded into columns")
                                     : fmt::format("{} product{}", count, count == 1 ? "" : "s"),
                       way_.parts > 1 ? fmt::format(", {} parts", way_.parts) : "", name_of(math_));
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    kernels::cuda::GatherProduct product = product_;
    product.conv = bind(pass_, bindings);
    const kernels::cuda::Tensor& tensor = forward_ ? product.conv.x : product.conv.y;
    if (operand_.in_place && !is_aligned(tensor.data)) return run_directly(pass_.kind, product.conv, stream);
    std::byte* const weights = workspace + operand_.bytes;
    product.source_rows = operand_.in_place ? tensor.data : workspace;
    product.weight_rows = weights;
    product.partial = reinterpret_cast<float*>(weights + weight_bytes());
    if (way_.patches) {
      kernels::cuda::make_patch_rows(product.conv, type_, workspace, stream);
      kernels::cuda::make_patch_weights(product.conv, type_, weights, stream);
    } else {
      kernels::cuda::make_weight_rows(weights_of(product.conv), !forward_, type_, weights, stream);
    }
    if (cleared_ > 0)
      kernels::cuda::clear((forward_ ? product.conv.y : product.conv.x).data, cleared_, stream);
    if (!way_.warpgroups) return kernels::cuda::gather_product(product, way_.products, stream);
    for (const ProductAxes& axes : way_.products) {
      product.axes = axes;
      kernels::cuda::gather_product(product, {&axes, 1}, stream);
    }
  }

 private:
  size_t rows_bytes(bool wanted) const { return wanted && !way_.patches ? operand_.bytes : 0; }
  bool is_folded() const { return way_.columns != kernels::cuda::Columns::kChannels; }
  // Taps that are columns, faster than channels: a convolution of one tap and so many more x channels.
  Conv weights_of(Conv conv) const {
    if (way_.columns != kernels::cuda::Columns::kFoldedTapsFast) return conv;
    conv.x_channels *= taps_of(pass_);
    conv.w.strides[1] = 1;
    for (kernels::cuda::Axis& axis : conv.axes) axis.kernel = 1;
    return conv;
  }
  const PassTensor& source() const { return forward_ ? pass_.x : pass_.y; }
  size_t weight_bytes() const {
    const int64_t taps = way_.patches ? 1 : taps_of(pass_);
    return room_for(pass_.groups * operand_.filled * columns_of(pass_) * taps, type_);
  }
  kernels::cuda::GatherCut cut() const {
    return way_.warpgroups ? kernels::cuda::GatherCut{} : kernels::cuda::gather_cut(product_, way_.products);
  }
  std::string tiles() const {
    if (way_.products.empty()) return "";
    if (way_.warpgroups) return "warpgroups, ";
    return fmt::format("tiles {} x {}, ", cut().tiles.m, cut().tiles.n);
  }

  ConvPass pass_;
  bool forward_;
  RowType type_;
  ProductMath math_;
  RowOperand operand_;
  GatherWay way_;
  RowConversions rows_;
  kernels::cuda::GatherProduct product_{};  // without addresses
  size_t cleared_ = 0;                      // bytes of the result that are set to zero before the products
};

std::unique_ptr<const Step> make_row_step(const ConvPass& pass, const Machine& machine) {
  if (is_grad_weight(pass)) return make_row_weight_step(pass, machine);
  return with_aligned_copies(pass, std::make_unique<GatherStep>(pass, machine));
}

// Tiles that are not full included.
Effort row_effort(const ConvPass& p, const Machine& machine) {
  const RowType type = row_type_of(p);
  const ProductMath math = math_of(type, p.rounding);
  Times times(p, machine);
  if (is_grad_weight(p)) {
    const kernels::cuda::WeightWay way = RowWeightPass(p, type, math, machine).way;
    for (const double copied : {way.x_copied, way.y_copied})
      if (copied > 0) times.add_copy(copied / 2);
    if (way.patches > 0) times.add(kernels::cuda::patch_microseconds(way));
    const bool on_warpgroups = !kernels::cuda::in_planes(way.form) && way.choice.m == 0;
    times.add(way.product * (on_warpgroups ? kPacedProcessors / processors_of(machine)
                                           : kPacedTflops[static_cast<size_t>(math)] /
                                                 tile_tflops(math, true, machine)),
              2);
    return times.effort();
  }
  const bool forward = is_forward(p);
  const RowOperand source = row_operand(p, forward ? p.x : p.y, forward ? x_sizes(p) : y_sizes(p), type);
  const GatherWay way = gather_way(p, source, type, math, machine);
  const double element = static_cast<double>(size_of(dtype_of(type)));
  if (way.copied > 0) times.add_elements(way.copied / 2 / element);
  times.add_elements(kWeights * bytes_of(p.w, w_sizes(p)) / static_cast<double>(size_of(p.w.dtype)));
  // Residues, and windows with gaps, write elements that lie apart.
  const Sizes5 sizes = forward ? y_sizes(p) : x_sizes(p);
  const bool apart = (way.products.size() > 1 || way.cleared) && !is_channels_last(p.result(), sizes);
  const double written = bytes_of(p.result(), sizes) * ((apart ? 3 : 0) + (way.cleared ? 1 : 0));
  times.add(way.microseconds, way.launches + (way.cleared ? 1 : 0), bytes_of(p) + written);
  return times.effort();
}

template <bool kInTf32>
Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support support = takes_products(conv); !support.accepted()) return support;
  const bool in_f32 = row_type_of(conv) == RowType::kF32;
  if (kInTf32 && (!conv.hf32_allowed || !in_f32))
    return Support::no("f32 operands must not be rounded, or are not there");
  if (kInTf32 && conv.groups > 1 &&
      std::min(conv.x_channels_per_group(), conv.y_channels_per_group()) < kFewestChannels)
    return Support::no("groups of fewer than {} channels fill few tiles", kFewestChannels);
  if (!kInTf32 && in_f32)
    if (const Support support = takes_split_products(terms_of(conv)); !support.accepted()) return support;
  if (conv.kind == ConvPassKind::kGradInput && !has_gather_way(conv))
    return Support::no("more than 64 residues of the strides, with windows that overlap");
  return Support::yes();
}

template <bool kInTf32>
const Candidate& candidate(const char* name) {
  static const ConvCandidate instance({name, "convolutions only", supports<kInTf32>,
                                       [](const ConvPass& pass, const Machine& machine) {
                                         return row_effort(rounded(pass, kInTf32), machine);
                                       },
                                       [](const ConvPass& pass, const Machine& machine) {
                                         return make_row_step(rounded(pass, kInTf32), machine);
                                       },
                                       nullptr, kInTf32});
  return instance;
}

}  // namespace

const Candidate& row_products() { return candidate<false>("cuda.row_products"); }
const Candidate& tf32_products() { return candidate<true>("cuda.tf32_products"); }

}  // namespace retrograd::engines::cuda

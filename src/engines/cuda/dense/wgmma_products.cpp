// SPDX-License-Identifier: Apache-2.0
// forward and grad_input in 16-bit types on Hopper (wgmma): implicit GEMM over rows of channels, one product
// for each residue of the strides, up to nine a launch; where x has few channels, forward is one product of
// im2col patches.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/dense/product_axes.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/layout/aligned_copies.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GatherLaunch;
using kernels::cuda::GatherProduct;
using kernels::cuda::is_aligned;
using kernels::cuda::ProductMath;
using kernels::cuda::Result;
using kernels::cuda::RowType;

constexpr int64_t kChunk = 8;          // channels of 16 bytes
constexpr int64_t kMostProducts = 64;  // residues of strides
constexpr double kEnds = 2;            // microseconds of a kernel's beginning and end
constexpr double kScattered = 1.1e6;   // bytes a microsecond
constexpr double kPatched = 3e6;       // bytes a microsecond, read or written

int64_t taps_of(const ProductAxes& axes) { return axes[0].taps * axes[1].taps * axes[2].taps; }

// The products of a pass, those with most taps first; without taps there is none.
std::vector<ProductAxes> products_of(const ConvPass& p, bool patches) {
  std::vector<ProductAxes> all = patches ? std::vector{patch_axes(p)} : product_axes(p);
  std::erase_if(all, has_no_tap);
  std::stable_sort(all.begin(), all.end(),
                   [](const ProductAxes& a, const ProductAxes& b) { return taps_of(a) > taps_of(b); });
  return all;
}
// What they have in common, without addresses.
GatherProduct product_of(const ConvPass& p, bool patches) {
  GatherProduct product{};
  product.conv = shape_of(p);
  product.forward = is_forward(p);
  product.patches = patches;
  product.math = half_row_type(p) == RowType::kF16 ? ProductMath::kF16 : ProductMath::kBF16;
  return product;
}
double microseconds_of(const GatherProduct& product, const std::vector<ProductAxes>& residues) {
  double sum = 0;
  for (const GatherLaunch& launch : kernels::cuda::wgmma_gather_launches(product, residues))
    sum += launch.microseconds;
  return sum;
}
double microseconds_of(const ConvPass& p, bool patches) {
  return microseconds_of(product_of(p, patches), products_of(p, patches));
}
// Rows of channels have whole chunks of them; patches are filled up.
bool has_rows(const ConvPass& p) { return p.x_channels_per_group() % kChunk == 0; }
bool takes_patches(const ConvPass& p) {
  if (p.groups != 1 || !has_patches(p, half_row_type(p))) return false;
  if (!has_rows(p)) return true;
  const bool copied = !is_channels_last(p.x, x_sizes(p));
  const double rows = microseconds_of(p, false) + (copied ? 2 * bytes_of(p.x, x_sizes(p)) / kPatched : 0);
  return microseconds_of(p, true) + patch_traffic(p, half_row_type(p)) / kPatched < rows;
}

kernels::cuda::Tensor& result_of(GatherProduct& product) {
  return product.forward ? product.conv.y : product.conv.x;
}
void set_channels_last(kernels::cuda::Tensor& tensor, const Sizes5& sizes) {
  const problem::Strides5 strides = channels_last_strides(sizes);
  std::copy(strides.begin(), strides.end(), tensor.strides);
}

// Whether a result of planes is made as rows and copied: residues would write every other element, and taps
// are shared only where rows are written.
bool goes_through_rows(const ConvPass& p, bool patches) {
  const std::vector<ProductAxes> products = products_of(p, patches);
  if (products.empty() || is_channels_last(p.result(), result_sizes(p))) return false;  // empty: zeros
  if (!patches && product_axes(p).size() != 1) return true;
  GatherProduct product = product_of(p, patches);
  const double planes = microseconds_of(product, products);
  set_channels_last(result_of(product), result_sizes(p));
  constexpr double kCopied = 1.5e6;  // bytes a microsecond, read and written
  return microseconds_of(product, products) + 3 +
             static_cast<double>(room_of(result_sizes(p), DType::kF16)) / kCopied <
         planes;
}

class WgmmaStep final : public Step {
 public:
  explicit WgmmaStep(const ConvPass& pass)
      : pass_(pass),
        type_(half_row_type(pass)),
        patches_(takes_patches(pass)),
        products_(products_of(pass, patches_)),
        cleared_(!patches_ && products_.size() < product_axes(pass).size()),
        copied_(patches_ || !is_channels_last(source_of(pass), source_sizes(pass))),
        rows_(pass, type_, rows_bytes(is_forward(pass)), rows_bytes(!is_forward(pass))),
        weights_copied_(patches_ || !is_channels_last(pass.w, w_sizes(pass))),
        through_rows_(goes_through_rows(pass, patches_)) {
    for (const ProductAxes& axes : product_axes(pass)) padded_ = padded_ || leaves_source(axes);
    GatherProduct product = product_of(pass, patches_);
    if (through_rows_) set_channels_last(result_of(product), result_sizes(pass));
    launches_ = kernels::cuda::wgmma_gather_launches(product, products_);
  }
  WantsAligned wants_aligned() const {
    const bool forward = is_forward(pass_);
    return {.x = !forward || !copied_, .y = forward || !copied_, .w = !weights_copied_};
  }
  Conversions conversions() const override { return rows_.all; }
  size_t workspace_bytes() const override {
    return source_bytes() + weight_bytes() + (through_rows_ ? room_of(result_sizes(pass_), DType::kF16) : 0);
  }
  std::string describe() const override {
    const int shares = launches_.empty() ? 1 : launches_[0].shares;
    return fmt::format("tiles {}{}, {} {}{}, weights {}, {} product{}{}",
                       launches_.empty() ? "none" : name_of(launches_[0].shape),
                       shares > 1 ? fmt::format(" by {} blocks", shares) : "",
                       type_ == RowType::kF16 ? "f16" : "bf16", patches_ ? "patches" : "rows",
                       copied_ ? "" : " in place", weights_copied_ ? "copied" : "in place", products_.size(),
                       products_.size() == 1 ? "" : "s", through_rows_ ? ", result copied" : "");
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    const bool forward = is_forward(pass_);
    GatherProduct product = product_of(pass_, patches_);
    product.conv = bind(pass_, bindings);
    Conv& conv = product.conv;
    const kernels::cuda::Tensor source = forward ? conv.x : conv.y;
    kernels::cuda::Tensor& result = forward ? conv.y : conv.x;
    if ((!copied_ && !is_aligned(source.data)) || (!weights_copied_ && !is_aligned(conv.w.data)) ||
        !is_aligned(result.data))
      return run_directly(pass_.kind, conv, stream);
    std::byte* const weights = workspace + source_bytes();
    if (patches_) {
      kernels::cuda::make_patch_rows(conv, type_, workspace, stream);
      kernels::cuda::make_patch_weights(conv, type_, weights, stream);
    } else if (weights_copied_) {
      kernels::cuda::make_filter(conv, pass_.y_channels, pass_.x_channels_per_group(), type_, weights,
                                 stream);
    }
    product.padded = padded_;
    product.source_rows = copied_ ? workspace : source.data;
    product.weight_rows = weights_copied_ ? weights : conv.w.data;
    const Conv callers = conv;
    if (through_rows_) {
      result.data = weights + weight_bytes();
      set_channels_last(result, result_sizes(pass_));
    }
    if (cleared_) kernels::cuda::clear(result.data, size_in_bytes(result_sizes(pass_), DType::kF16), stream);
    for (const GatherLaunch& launch : launches_)
      if (!kernels::cuda::wgmma_gather(product, launch, stream))
        return run_directly(pass_.kind, callers, stream);
    if (through_rows_)
      kernels::cuda::take_rows(callers, forward ? Result::kForward : Result::kGradInput,
                               result_sizes(pass_)[1], type_, result.data, stream);
  }

 private:
  size_t source_bytes() const {
    if (patches_) return room_for(patch_elements(pass_, type_), type_);
    return rows_.bytes;
  }
  size_t weight_bytes() const {
    if (patches_) return room_for(pass_.y_channels * patch_row(pass_, type_), type_);
    return weights_copied_ ? room_of(w_sizes(pass_), DType::kF16) : 0;
  }
  size_t rows_bytes(bool wanted) const {
    return wanted && copied_ && !patches_ ? room_of(source_sizes(pass_), DType::kF16) : 0;
  }

  ConvPass pass_;
  RowType type_;
  bool patches_;
  std::vector<ProductAxes> products_;
  bool cleared_;  // the result is set to zero before the products
  bool copied_;
  RowConversions rows_;
  bool weights_copied_, through_rows_;
  bool padded_ = false;
  std::vector<GatherLaunch> launches_;  // of products_
};

bool has_walkable_places(const ConvPass& p) {
  const bool patches = takes_patches(p);
  const GatherProduct product = product_of(p, patches);
  const auto products = products_of(p, patches);
  return std::all_of(products.begin(), products.end(), [&](const ProductAxes& axes) {
    return kernels::cuda::wgmma_gather_takes(product, axes);
  });
}

Support takes(const ConvPass& p, const Machine& machine) {
  if (is_grad_weight(p)) return Support::no("forward and grad_input only");
  if (!is_half_type(p.x.dtype) || p.x.dtype != p.y.dtype || p.x.dtype != p.w.dtype ||
      p.rounding != OperandRounding::kNone)
    return Support::no("needs f16 or bf16, all the same, and no rounding of operands");
  if (p.y_channels_per_group() % kChunk != 0) return Support::no("needs multiples of 8 channels a group");
  if (!fits_31_bits(p)) return Support::no("needs 1 to 2^31 - 1 elements in each tensor");
  if (!has_rows(p) && (p.groups != 1 || !has_patches(p, half_row_type(p))))
    return Support::no("needs multiples of 8 x channels, or patches of few");
  const Sizes5 sizes = result_sizes(p);
  if (!is_planes(p.result(), sizes) && !is_channels_last(p.result(), sizes))
    return Support::no("needs a dense result, channels last or row-major");
  int64_t products = 1;
  for (const Window& w : p.axes) {
    for (const int64_t size : {w.stride, w.dilation, w.kernel})
      if (size >= 1 << 20) return Support::no("windows beyond what the copy engine walks over");
    if (p.kind == ConvPassKind::kGradInput) products *= std::min(w.stride, w.x);
  }
  if (products > kMostProducts)
    return Support::no("{} residues of the strides, at most {} are taken", products, kMostProducts);
  if (!has_warpgroups(machine)) return Support::no("needs a Hopper GPU");
  if (!has_walkable_places(p)) return Support::no("windows beyond what the copy engine walks over");
  const std::vector<ProductAxes> residues = product_axes(p);
  if (p.bias && std::any_of(residues.begin(), residues.end(), has_no_tap))
    return Support::no("adds no bias to places without a tap");
  return Support::yes();
}

// The tiles' measured times, and copies of what does not lie as rows.
Effort effort(const ConvPass& p, const Machine& machine) {
  Times times(p, machine);
  const bool patches = takes_patches(p);
  if (patches)
    times.add_copy(patch_traffic(p, half_row_type(p)) / 2);
  else if (!is_channels_last(source_of(p), source_sizes(p)))
    times.add_copy(bytes_of(source_of(p), source_sizes(p)));
  if (patches || !is_channels_last(p.w, w_sizes(p))) times.add_copy(bytes_of(p.w, w_sizes(p)));
  const bool through_rows = goes_through_rows(p, patches);
  const double processors = kPacedProcessors / processors_of(machine);
  GatherProduct product = product_of(p, patches);
  const std::vector<ProductAxes> products = products_of(p, patches);
  if (through_rows) set_channels_last(result_of(product), result_sizes(p));
  double microseconds = 0, launches = 0;
  for (const GatherLaunch& launch : kernels::cuda::wgmma_gather_launches(product, products)) {
    microseconds += launch.microseconds * processors;
    ++launches;
  }
  const bool clears = !patches && products.size() < product_axes(p).size();
  const double cleared = clears ? bytes_of(p.result(), result_sizes(p)) : 0;
  times.add(microseconds, launches, bytes_of(p) + cleared);
  times.add(kEnds * launches, clears ? 1 : 0);
  // Planes of an odd number of places are written element by element.
  const Sizes5 sizes = result_sizes(p);
  if (!through_rows && !is_channels_last(p.result(), sizes) && sizes[2] * sizes[3] * sizes[4] % kChunk != 0)
    times.add(bytes_of(p.result(), sizes) / kScattered, 0);
  if (through_rows) times.add_copy(bytes_of(p.result(), result_sizes(p)));
  return times.effort();
}

}  // namespace

const Candidate& wgmma_products() {
  static const ConvCandidate instance(
      {"cuda.wgmma_products", "convolutions only", takes, effort, make_aligned_step<WgmmaStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda

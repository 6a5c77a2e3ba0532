// SPDX-License-Identifier: Apache-2.0
// Rows of both operands, then the product.
#include "engines/cuda/row_products.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/product_axes.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/weight_product.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kMostElements = int64_t{1} << 31;
constexpr size_t kMostProducts = 64;  // residues of strides: each is a launch

// The narrowest type that holds both operands exactly. FP16 holds both 8-bit types.
RowType row_type(const ConvPass& pass, const PassTensor& a, const PassTensor& b) {
  const auto in_f16 = [&](const PassTensor& t) {
    return t.dtype == DType::kF16 || is_8bit(t.dtype) ||
           (t.dtype == DType::kF32 && pass.rounding == OperandRounding::kF16);
  };
  if (in_f16(a) && in_f16(b)) return RowType::kF16;
  if (a.dtype == DType::kBF16 && b.dtype == DType::kBF16) return RowType::kBF16;
  return RowType::kF32;
}

DType dtype_of(RowType type) {
  return type == RowType::kF16 ? DType::kF16 : type == RowType::kBF16 ? DType::kBF16 : DType::kF32;
}

// One operand, x or y, on its way to rows.
struct RowOperand {
  bool in_place = false;  // it is rows already
  int64_t filled = 0;     // channels of a group
  size_t bytes = 0;       // of the workspace
};

RowOperand row_operand(const ConvPass& pass, const PassTensor& tensor, const Sizes5& sizes, RowType type) {
  const int64_t channels = sizes[1] / pass.groups, chunk = kernels::cuda::chunk_elements(type);
  RowOperand operand;
  operand.filled = ceil_div(channels, chunk) * chunk;
  operand.in_place = tensor.dtype == dtype_of(type) && channels % chunk == 0 &&
                     is_channels_last(tensor, sizes) &&
                     (pass.rounding == OperandRounding::kNone || tensor.dtype != DType::kF32);
  const int64_t elements = sizes[0] * sizes[2] * sizes[3] * sizes[4] * pass.groups * operand.filled;
  if (!operand.in_place)
    operand.bytes = static_cast<size_t>(elements) * kernels::cuda::row_element_bytes(type);
  operand.bytes = (operand.bytes + 255) / 256 * 256;
  return operand;
}

// The address of the rows: the operand itself, or where they have been made.
const void* rows_of(const RowOperand& operand, const kernels::cuda::Conv& conv,
                    const kernels::cuda::Tensor& tensor, bool is_x, RowType type, std::byte* workspace,
                    kernels::cuda::Stream stream) {
  if (operand.in_place) return tensor.data;
  kernels::cuda::Rows rows{};
  rows.batch = conv.batch;
  rows.groups = conv.groups;
  rows.channels = is_x ? conv.x_channels : conv.y_channels;
  for (int i = 0; i < 3; ++i) rows.spatial[i] = is_x ? conv.axes[i].x : conv.axes[i].y;
  rows.source = tensor;
  rows.rounding = conv.rounding;
  kernels::cuda::make_rows(rows, type, workspace, stream);
  return workspace;
}

bool is_aligned(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

class GatherStep final : public Step {
 public:
  explicit GatherStep(const ConvPass& pass)
      : pass_(pass),
        forward_(pass.kind == ConvPassKind::kForward),
        type_(row_type(pass, source(), pass.w)),
        operand_(row_operand(pass, source(), forward_ ? x_sizes(pass) : y_sizes(pass), type_)),
        products_(product_axes(pass)) {
    for (const ProductAxes& axes : products_) padded_ = padded_ || leaves_source(axes);
  }
  size_t workspace_bytes() const override {
    int64_t weights = pass_.groups * operand_.filled *
                      (forward_ ? pass_.y_channels_per_group() : pass_.x_channels_per_group());
    for (const problem::Window& axis : pass_.axes) weights *= axis.kernel;
    return operand_.bytes + static_cast<size_t>(weights) * kernels::cuda::row_element_bytes(type_);
  }
  std::string describe() const override {
    return fmt::format("{} rows{}, {} product{}", name_of(dtype_of(type_)),
                       operand_.in_place ? " in place" : "", products_.size(),
                       products_.size() == 1 ? "" : "s");
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    kernels::cuda::GatherProduct product{};
    product.conv = bind(shape_of(pass_), pass_, bindings);
    const kernels::cuda::Tensor& tensor = forward_ ? product.conv.x : product.conv.y;
    if (operand_.in_place && !is_aligned(tensor.data))
      return forward_ ? kernels::cuda::direct_forward(product.conv, stream)
                      : kernels::cuda::direct_grad_input(product.conv, stream);
    product.forward = forward_;
    product.padded = padded_;
    product.type = type_;
    product.source_rows = rows_of(operand_, product.conv, tensor, forward_, type_, workspace, stream);
    product.weight_rows = workspace + operand_.bytes;
    kernels::cuda::make_weight_rows(product.conv, !forward_, type_, workspace + operand_.bytes, stream);
    for (const ProductAxes& axes : products_) {
      std::copy(axes.begin(), axes.end(), product.axes);
      kernels::cuda::gather_product(product, stream);
    }
  }

 private:
  const PassTensor& source() const { return forward_ ? pass_.x : pass_.y; }

  ConvPass pass_;
  bool forward_;
  RowType type_;
  RowOperand operand_;
  std::vector<ProductAxes> products_;
  bool padded_ = false;
};

class WeightStep final : public Step {
 public:
  explicit WeightStep(const ConvPass& pass)
      : pass_(pass),
        type_(row_type(pass, pass.x, pass.y)),
        x_(row_operand(pass, pass.x, x_sizes(pass), type_)),
        y_(row_operand(pass, pass.y, y_sizes(pass), type_)),
        parts_(kernels::cuda::weight_product_parts(shape_of(pass), type_)) {}
  size_t workspace_bytes() const override {
    int64_t weights = pass_.y_channels * pass_.x_channels_per_group();
    for (const problem::Window& axis : pass_.axes) weights *= axis.kernel;
    return x_.bytes + y_.bytes + static_cast<size_t>(parts_ * weights) * sizeof(float);
  }
  std::string describe() const override {
    return fmt::format("{} rows{}{}, {} parts", name_of(dtype_of(type_)), x_.in_place ? ", x in place" : "",
                       y_.in_place ? ", y in place" : "", parts_);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    kernels::cuda::WeightProduct product{};
    product.conv = bind(shape_of(pass_), pass_, bindings);
    if ((x_.in_place && !is_aligned(product.conv.x.data)) ||
        (y_.in_place && !is_aligned(product.conv.y.data)))
      return kernels::cuda::direct_grad_weight(product.conv, stream);
    product.padded = leaves_source(pass_);
    product.type = type_;
    product.x_rows = rows_of(x_, product.conv, product.conv.x, true, type_, workspace, stream);
    product.y_rows = rows_of(y_, product.conv, product.conv.y, false, type_, workspace + x_.bytes, stream);
    product.workspace = reinterpret_cast<float*>(workspace + x_.bytes + y_.bytes);
    kernels::cuda::weight_product(product, stream);
  }

 private:
  ConvPass pass_;
  RowType type_;
  RowOperand x_, y_;
  int64_t parts_;
};

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
         p.x_channels_per_group() > 1 << 20 || p.y_channels_per_group() > 1 << 20 || p.groups > 65535;
}

class RowProductsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.row_products"; }
  Support supports(const problem::Pass& pass) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) return Support::no("convolutions only");
    if (conv->batch == 0 || conv->x_channels == 0 || conv->y_channels == 0)
      return Support::no("nothing to add up");
    for (const problem::Window& w : conv->axes)
      if (w.x == 0 || w.y == 0) return Support::no("nothing to add up");
    if (conv->groups > 1 && conv->x_channels == conv->groups && conv->y_channels == conv->groups)
      return Support::no("one channel a group on both sides: tiles would be almost empty");
    if (is_too_large(*conv)) return Support::no("sizes beyond 32-bit counts of places, taps or channels");
    if (conv->kind == ConvPassKind::kGradInput) {
      int64_t products = 1;
      for (const problem::Window& w : conv->axes) products *= std::min(w.stride, w.x);
      if (products > static_cast<int64_t>(kMostProducts))
        return Support::no(
            fmt::format("{} residues of the strides, at most {} are taken", products, kMostProducts));
    }
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass) const override {
    const auto& conv = std::get<ConvPass>(pass);
    if (conv.kind == ConvPassKind::kGradWeight) return std::make_unique<WeightStep>(conv);
    return std::make_unique<GatherStep>(conv);
  }
};

}  // namespace

const Candidate& row_products() {
  static const RowProductsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda

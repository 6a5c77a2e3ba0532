// SPDX-License-Identifier: Apache-2.0
// grad_input with few x channels and many y channels:
//   z[p, (t, i)] = Σ_o y[p, o] · w[o, i, t]      x[q, i] = Σ_t z[output_reading(q, t), (t, i)]
// The first is a convolution of one tap whose tiles are filled by taps and channels together, and leaves y's
// rows alone: row_products computes it into FP32 planes of the workspace. No product of it meets padding.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cost.h"
#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/dense/row_operand.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::RowType;

constexpr int64_t kMostChannels = 32;       // of x: more fill tiles by themselves
constexpr int64_t kMostColumns = 1 << 16;   // taps and channels
constexpr int64_t kFar = int64_t{1} << 27;  // along an axis, which is counted with 32 bits
constexpr int64_t kLargestStride = 1 << 15;
constexpr double kFreeBytes = 64 << 20, kMostGrowth = 2;

int64_t y_places(const ConvPass& p) { return p.axes[0].y * p.axes[1].y * p.axes[2].y; }
double elements_of(const Sizes5& sizes) {
  double elements = 1;
  for (const int64_t size : sizes) elements *= static_cast<double>(size);
  return elements;
}
int64_t columns_elements(const ConvPass& p) { return p.batch * y_places(p) * taps_of(p) * p.x_channels; }

// The product: y's places by taps and x channels, the weights as rows of y channels.
ConvPass product_of(const ConvPass& p) {
  const RowType type = row_type_of(p);
  ConvPass product = p;
  product.kind = ConvPassKind::kForward;
  product.bias.reset();
  product.x_channels = p.y_channels;
  product.y_channels = taps_of(p) * p.x_channels;
  product.x = p.y;
  product.y = {.operand = p.x.operand, .dtype = DType::kF32, .strides = {}};
  int64_t stride = 1;
  for (size_t axis = 5; axis-- > 2; stride *= p.axes[axis - 2].y) product.y.strides[axis] = stride;
  product.y.strides[1] = stride;
  product.y.strides[0] = stride * product.y_channels;
  for (Window& w : product.axes) w = {.x = w.y, .y = w.y};
  const int64_t chunk = kernels::cuda::chunk_elements(type);
  product.w.dtype = dtype_of(type);
  product.w.strides = {ceil_div(p.y_channels, chunk) * chunk, 1, 0, 0, 0};
  return product;
}

class Col2imStep final : public Step {
 public:
  Col2imStep(const ConvPass& pass, const Machine& machine)
      : pass_(pass),
        type_(row_type_of(pass)),
        product_(product_of(pass)),
        step_(row_products().make_step(product_, machine)),
        step_bytes_(room_of(step_->workspace_bytes())),
        columns_bytes_(room_for(columns_elements(pass), RowType::kF32)),
        weight_bytes_(room_for(product_.y_channels * product_.w.strides[0], type_)) {}
  Conversions conversions() const override { return step_->conversions(); }
  size_t workspace_bytes() const override { return step_bytes_ + columns_bytes_ + weight_bytes_; }
  std::string describe() const override {
    return fmt::format("{} columns of taps and channels; {}: {}", product_.y_channels, row_products().name(),
                       step_->describe());
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const auto stream = stream_of(context);
    const Conv conv = bind(pass_, bindings);
    std::byte* const columns = workspace + step_bytes_;
    std::byte* const weights = columns + columns_bytes_;
    kernels::cuda::make_weight_rows(conv, true, type_, weights, stream);
    Bindings inner = bindings;
    inner.set(product_.y.operand, columns);
    inner.set(product_.w.operand, weights);
    step_->run(inner, workspace, context);
    kernels::cuda::add_columns(conv, reinterpret_cast<const float*>(columns), stream);
  }

 private:
  ConvPass pass_;
  RowType type_;
  ConvPass product_;
  std::unique_ptr<const Step> step_;
  size_t step_bytes_, columns_bytes_, weight_bytes_;
};

bool is_too_large(const ConvPass& p) {
  Checked columns = p.x_channels, elements = Checked(p.batch) * p.x_channels;
  for (const Window& w : p.axes) {
    if (is_far(w, kFar) || (w.y > 1 && w.stride > kLargestStride)) return true;
    columns = columns * w.kernel;
    elements = elements * w.y;
  }
  if (!columns.get() || *columns.get() > kMostColumns) return true;
  elements = elements * taps_of(p);
  if (!fits_31_bits(x_sizes(p)) || !elements.get()) return true;
  return 4 * static_cast<double>(*elements.get()) > kMostGrowth * std::max(kFreeBytes, bytes_of(p));
}

Support supports(const ConvPass& conv, const Machine& machine) {
  if (conv.kind != ConvPassKind::kGradInput) return Support::no("grad_input only");
  if (conv.groups != 1 || conv.x_channels > kMostChannels || conv.x_channels > conv.y_channels)
    return Support::no("x has more channels than y, or than {}, or groups", kMostChannels);
  for (const Window& w : conv.axes)
    if (w.x <= 0 || w.y <= 0 || w.kernel <= 0) return Support::no("nothing to add up");
  if (conv.batch <= 0 || conv.x_channels <= 0) return Support::no("nothing to add up");
  if (is_too_large(conv)) return Support::no("the columns are too many, or many times the operands");
  if (taps_of(conv) == 1) return Support::no("one tap");
  // A thread that adds up taps would find one, and walk over all others.
  if (std::all_of(conv.axes.begin(), conv.axes.end(),
                  [](const Window& w) { return w.stride >= (w.kernel - 1) * w.dilation + 1; }))
    return Support::no("windows do not overlap: nothing to add up");
  if (!row_products().supports(product_of(conv), machine).accepted())
    return Support::no("row_products does not take the columns");
  return Support::yes();
}

Effort effort(const ConvPass& p, const Machine& machine) {
  // A place of x: its taps and index, and what each of its windows adds, in instructions.
  constexpr double kPlace = 90, kWindow = 8, kOfIssue = 0.5;
  const double places = elements_of(x_sizes(p)), columns = static_cast<double>(columns_elements(p));
  Times times(p, machine);
  times.add_copy(bytes_of(p.w, w_sizes(p)));
  times.add(
      2 * (kPlace * places + kWindow * columns) / (kOfIssue * std::max(machine.gpu.fp32_tflops, 1e-3) * 1e6),
      1, 4 * columns + bytes_of(p.x, x_sizes(p)));
  return times.effort();
}

std::optional<Rest> rest(const ConvPass& pass, const Machine& /*machine*/) {
  return Rest{&row_products(), product_of(pass)};
}

}  // namespace

const Candidate& col2im() {
  static const ConvCandidate instance(
      {"cuda.col2im", "grad_input only", supports, effort, make_step<Col2imStep>, rest});
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// Convolutions by cuDNN: operands are brought into its layout, and the result back into the caller's.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/layout/results.h"
#include "runtime/cuda/cudnn.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using kernels::cuda::Result;
using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;
using runtime::CudnnConvolution;
using runtime::CudnnShape;

constexpr int64_t kChunk = 8;  // channels that tensor cores read at once
constexpr double kEnds = 4;    // microseconds of a kernel's beginning and end

size_t rounded_up(int64_t bytes) { return static_cast<size_t>((bytes + 255) / 256 * 256); }

// The least padding behind x that gives y outputs.
int64_t pad_behind(const problem::Window& w) {
  return std::max<int64_t>((w.y - 1) * w.stride + (w.kernel - 1) * w.dilation + 1 - w.x - w.pad_lo, 0);
}

// One tap that leaves nothing out and reads no padding.
bool is_pointwise(const ConvPass& p) {
  return std::all_of(p.axes.begin(), p.axes.end(), [](const problem::Window& w) {
    return w.kernel == 1 && w.stride == 1 && w.pad_lo == 0 && w.x == w.y;
  });
}

// Kernels of one tap on row-major planes are products of matrices as they lie. Where planes are no whole
// 16-byte vectors, cuDNN takes three times as long as in channels-last form, copies included.
bool is_pointwise_on_planes(const ConvPass& p) {
  const int64_t places = p.axes[0].x * p.axes[1].x * p.axes[2].x;
  return is_pointwise(p) && p.groups == 1 && places % kChunk == 0 && p.x_channels % kChunk == 0 &&
         p.y_channels % kChunk == 0 && is_planes(p.x, x_sizes(p)) && is_planes(p.y, y_sizes(p)) &&
         is_planes(p.w, w_sizes(p));
}

CudnnShape cudnn_shape(const ConvPass& p, bool channels_last) {
  CudnnShape s;
  s.pass =
      p.kind == ConvPassKind::kForward ? runtime::CudnnPass::kForward : runtime::CudnnPass::kBackwardData;
  s.type = p.x.dtype == DType::kF16 ? runtime::CudnnType::kF16 : runtime::CudnnType::kBF16;
  s.channels_last = channels_last;
  const problem::Window& depth = p.axes[0];
  s.axes = depth.x == 1 && depth.y == 1 && depth.kernel == 1 && depth.pad_lo == 0 ? 2 : 3;
  s.batch = p.batch;
  s.x_channels = p.x_channels;
  s.y_channels = p.y_channels;
  for (size_t i = 0; i < 3; ++i) {
    const problem::Window& w = p.axes[i];
    s.x[i] = w.x;
    s.y[i] = w.y;
    s.kernel[i] = w.kernel;
    s.stride[i] = w.stride;
    s.dilation[i] = w.dilation;
    s.pad_lo[i] = w.pad_lo;
    s.pad_hi[i] = pad_behind(w);
  }
  return s;
}

// The convolution and whether it is in channels-last form; null where cuDNN has none.
struct Found {
  std::shared_ptr<const CudnnConvolution> convolution;
  bool channels_last = false;
};
Found find_convolution(const ConvPass& p) {
  if (is_pointwise_on_planes(p))
    if (auto found = CudnnConvolution::find(cudnn_shape(p, false))) return {std::move(found), false};
  return {CudnnConvolution::find(cudnn_shape(p, true)), true};
}

// A tensor in channels-last form: where it lies, or a copy in the workspace.
struct Form {
  bool in_place = false;
  size_t bytes = 0;  // of the copy
};
Form form_of(const PassTensor& tensor, const Sizes5& sizes) {
  if (is_channels_last(tensor, sizes)) return {.in_place = true};
  return {.bytes = rounded_up(sizes[0] * sizes[1] * sizes[2] * sizes[3] * sizes[4] * 2)};
}

class CudnnStep final : public Step {
 public:
  CudnnStep(const ConvPass& pass, Found found)
      : pass_(pass),
        convolution_(std::move(found.convolution)),
        type_(pass.x.dtype == DType::kF16 ? RowType::kF16 : RowType::kBF16) {
    // Engines of cuDNN fill in zeros for strides, too.
    padded_ = !is_pointwise(pass);
    if (!found.channels_last) {
      x_ = y_ = w_ = {.in_place = true};
      return;
    }
    x_ = form_of(pass.x, x_sizes(pass));
    y_ = form_of(pass.y, y_sizes(pass));
    w_ = form_of(pass.w, w_sizes(pass));
  }

  size_t workspace_bytes() const override {
    return x_.bytes + y_.bytes + w_.bytes + convolution_->workspace_bytes();
  }
  std::string describe() const override {
    return fmt::format("x {}, y {}, w {}, {} bytes for cuDNN", x_.in_place ? "in place" : "copied",
                       y_.in_place ? "in place" : "copied", w_.in_place ? "in place" : "copied",
                       convolution_->workspace_bytes());
  }

  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_from(bindings, workspace, false, context);
  }
  std::string_view left_copy() const override {
    return (grad_output_is_x() ? x_ : y_).in_place ? std::string_view{} : "channels last";
  }
  void run_with_copy(const Bindings& bindings, std::byte* workspace,
                     runtime::ExecutionContext& context) const override {
    run_from(bindings, workspace, true, context);
  }

 private:
  // Whether the pass reads the tensor that `result` would write.
  bool uses(ConvPassKind result) const { return pass_.kind != result; }
  bool grad_output_is_x() const { return pass_.x.operand == problem::Operand::kGradOutput; }

  struct Places {
    std::byte *x, *y, *w, *rest;
  };
  // The copy of grad_output comes first: the next step may want it.
  Places places(std::byte* workspace) const {
    const bool x_first = grad_output_is_x();
    std::byte* const second = workspace + (x_first ? x_ : y_).bytes;
    std::byte* const w = second + (x_first ? y_ : x_).bytes;
    return {x_first ? workspace : second, x_first ? second : workspace, w, w + w_.bytes};
  }

  void run_from(const Bindings& bindings, std::byte* workspace, bool grad_output_is_there,
                runtime::ExecutionContext& context) const {
    const auto stream = stream_of(context);
    const kernels::cuda::Conv conv = bind(shape_of(pass_), pass_, bindings);
    const Places at = places(workspace);
    const bool x_is_there = grad_output_is_there && grad_output_is_x();
    const bool y_is_there = grad_output_is_there && !grad_output_is_x();
    if (uses(ConvPassKind::kGradInput) && !x_.in_place && !x_is_there)
      make_rows(conv, conv.x, true, type_, at.x, stream);
    if (uses(ConvPassKind::kForward) && !y_.in_place && !y_is_there)
      make_rows(conv, conv.y, false, type_, at.y, stream);
    if (!w_.in_place)
      kernels::cuda::make_filter(conv, pass_.y_channels, pass_.x_channels, type_, at.w, stream);
    void* const x = x_.in_place ? conv.x.data : at.x;
    void* const y = y_.in_place ? conv.y.data : at.y;
    void* const w = w_.in_place ? conv.w.data : at.w;
    if (!is_aligned(x) || !is_aligned(y) || !is_aligned(w) ||
        !convolution_->run(x, y, w, at.rest, context.native_stream))
      return run_directly(conv, stream);
    finish(conv, at, stream);
  }

  void finish(const kernels::cuda::Conv& conv, const Places& at, kernels::cuda::Stream stream) const {
    const bool forward = pass_.kind == ConvPassKind::kForward;
    const Result result = forward ? Result::kForward : Result::kGradInput;
    if (!(forward ? y_ : x_).in_place)
      kernels::cuda::take_rows(conv, result, forward ? pass_.y_channels : pass_.x_channels, type_,
                               forward ? at.y : at.x, padded_, stream);
    else if (padded_)
      kernels::cuda::repair_result(conv, result, stream);
  }

  void run_directly(const kernels::cuda::Conv& conv, kernels::cuda::Stream stream) const {
    if (pass_.kind == ConvPassKind::kForward) return kernels::cuda::direct_forward(conv, stream);
    kernels::cuda::direct_grad_input(conv, stream);
  }

  ConvPass pass_;
  std::shared_ptr<const CudnnConvolution> convolution_;
  RowType type_;
  Form x_, y_, w_;
  bool padded_ = false;
};

// Whether cuDNN can say it: no negative padding, and its formula for the outputs gives y.
bool is_sayable(const ConvPass& p) {
  return std::all_of(p.axes.begin(), p.axes.end(), [](const problem::Window& w) {
    for (int64_t size : {w.pad_lo, w.kernel, w.stride, w.dilation})
      if (size < 0 || size >= 1 << 20) return false;
    return problem::output_size({w.x, w.kernel, w.stride, w.dilation, w.pad_lo, pad_behind(w)}) == w.y;
  });
}

// What cuDNN 9.19 reaches on an H200, in 16 bits: more the more channels there are, and with strides, of
// which it makes one launch. Elsewhere the same share of the peak.
double tflops_of(const ConvPass& p, const Machine& machine) {
  constexpr double kOfH200 = 989;
  const bool strided =
      std::any_of(p.axes.begin(), p.axes.end(), [](const problem::Window& w) { return w.stride > 1; });
  double tflops = p.x_channels <= 64 ? 400 : 500;
  if (strided) tflops = 620;
  if (p.kind == ConvPassKind::kForward)
    tflops = has_warpgroups(machine) ? 30 : 300;  // on Hopper GPUs slower than ours wherever measured
  if (is_pointwise(p)) tflops = 650;
  return tflops / kOfH200 * machine.gpu.f16_tflops;
}
// Its tiles are as wide as 32 channels of the result.
double padded_operations(const ConvPass& p) {
  const int64_t channels = p.kind == ConvPassKind::kForward ? p.y_channels : p.x_channels;
  return operations_of(p) * static_cast<double>(ceil_div(channels, 32) * 32) / static_cast<double>(channels);
}

// Where strides leave places of x without a tap, it writes zeros first, then reads and writes.
double moved_bytes(const ConvPass& p) {
  const bool gaps = std::any_of(p.axes.begin(), p.axes.end(),
                                [](const problem::Window& w) { return w.stride > w.kernel * w.dilation; });
  return bytes_of(p) + (gaps && p.kind == ConvPassKind::kGradInput ? 2 * bytes_of(p.x, x_sizes(p)) : 0);
}

class CudnnCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.cudnn"; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) return Support::no("convolutions only");
    if (conv->bias) return Support::no("adds no bias");
    // Parts of its sums are rounded to 16 bits, also with 16 channels on both sides and one tap (soak of
    // 2026-11-16), and no note of its engines says which.
    if (conv->kind == ConvPassKind::kGradWeight) return Support::no("its sums of weights are not exact");
    if (!machine.gpu.cudnn) return Support::no("cuDNN is not there");
    if ((conv->x.dtype != DType::kF16 && conv->x.dtype != DType::kBF16) || conv->x.dtype != conv->y.dtype ||
        conv->x.dtype != conv->w.dtype || conv->rounding != OperandRounding::kNone)
      return Support::no("needs f16 or bf16, all the same, and no rounding of operands");
    if (!fits_31_bits(x_sizes(*conv)) || !fits_31_bits(y_sizes(*conv)) || !fits_31_bits(w_sizes(*conv)))
      return Support::no("needs 1 to 2^31 - 1 elements in each tensor");
    // It gets what networks have. candidates_fuzz found of cuDNN 9.19 on an H200 (tests/shapes/gpu.txt): FP32
    // that is off by 8e-4 with groups and by an ulp on sums that are exact; parts of sums rounded to 16 bits,
    // and denormals lost, with groups, with few channels, and where they are filled up to 8.
    if (conv->groups != 1 || conv->x_channels % kChunk != 0 || conv->y_channels % kChunk != 0 ||
        std::min(conv->x_channels, conv->y_channels) < 2 * kChunk)
      return Support::no("needs one group, and multiples of 8 channels, 16 at least, on both sides");
    // It gives 0 for every -Inf there; PyTorch, which calls it, does so, too.
    if (conv->kind == ConvPassKind::kForward && conv->x.dtype == DType::kF16)
      return Support::no("its engines for forward results in f16 lose -Inf");
    // Wrong terms, in some batches and with some strides.
    if (std::any_of(conv->axes.begin(), conv->axes.end(), [](const problem::Window& w) {
          return w.kernel > 1 && std::max({w.pad_lo, pad_behind(w), (w.kernel - 1) * w.dilation}) >= w.x;
        }))
      return Support::no("its results are wrong where the kernel or the padding is as wide as the image");
    // One of 700 drawn took 2 500 times as long as expected, another 5 000 times.
    if (std::any_of(conv->axes.begin(), conv->axes.end(),
                    [](const problem::Window& w) {
                      return w.kernel > 7 || w.stride > 2 || (w.kernel > 1 && w.dilation > 1);
                    }) ||
        (conv->axes[0].x > 1 && std::min(conv->x_channels, conv->y_channels) < 64))
      return Support::no(
          "its engines may take very long for long, dilated or far apart windows, and for few "
          "channels in 3-D");
    if (!is_sayable(*conv)) return Support::no("sizes or paddings that cuDNN has no form for");
    return Support::yes();
  }
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    const auto& conv = std::get<ConvPass>(pass);
    Times times(pass, machine);
    if (!is_pointwise_on_planes(conv)) {
      const Form x = form_of(conv.x, x_sizes(conv)), y = form_of(conv.y, y_sizes(conv)),
                 w = form_of(conv.w, w_sizes(conv));
      for (const Form& form : {x, y, w})
        if (!form.in_place) times.add_copy(static_cast<double>(form.bytes));
    }
    times.add(padded_operations(conv) / (tflops_of(conv, machine) * 1e6), 1, moved_bytes(conv));
    times.add(kEnds, 0);
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    const auto& conv = std::get<ConvPass>(pass);
    Found found = find_convolution(conv);
    if (found.convolution == nullptr) return nullptr;
    return std::make_unique<CudnnStep>(conv, std::move(found));
  }
};

}  // namespace

const Candidate& cudnn_products() {
  static const CudnnCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda

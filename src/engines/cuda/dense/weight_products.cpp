// SPDX-License-Identifier: Apache-2.0
// Operands into rows of channels, the product in parts, their sum. Where x has few channels, it comes as
// patches.
#include <fmt/format.h>

#include <algorithm>

#include "base/checked.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/dense/weight_parts.h"
#include "kernels/cuda/dense/weight_product_plan.h"
#include "kernels/cuda/dense/wgmma_weight.h"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/layout/patch_rows.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using kernels::cuda::RowType;
using kernels::cuda::WeightPlan;
using problem::ConvPass;
using problem::ConvPassKind;
using problem::PassTensor;

constexpr int64_t kChunk = 8;             // channels of 16 bytes
constexpr double kEnds = 3;               // microseconds of a kernel's beginning and end
constexpr double kPacedProcessors = 132;  // where the cuts were measured

int64_t filled(int64_t channels) { return ceil_div(channels, kChunk) * kChunk; }
// Bytes of the copy that a tensor needs; 0: it is rows already.
size_t copy_bytes(const PassTensor& tensor, const Sizes5& sizes) {
  if (sizes[1] % kChunk == 0 && is_channels_last(tensor, sizes)) return 0;
  return static_cast<size_t>((sizes[0] * sizes[2] * sizes[3] * sizes[4] * filled(sizes[1]) * 2 + 255) / 256 *
                             256);
}

RowType type_of(const ConvPass& p) { return p.x.dtype == DType::kF16 ? RowType::kF16 : RowType::kBF16; }

// Patches where x has too few channels for tiles of one tap, and no cut takes all taps at once.
struct Form {
  bool found, patches = false;
  WeightPlan plan{};
};
Form form_of(const ConvPass& p) {
  Form form;
  form.found = kernels::cuda::plan_wgmma_weight(shape_of(p), &form.plan);
  if (form.found || !has_patches(p, type_of(p))) return form;
  form.patches = true;
  form.found = kernels::cuda::plan_wgmma_weight(kernels::cuda::conv_of_patches(shape_of(p)), &form.plan);
  return form;
}

class WeightProductStep final : public Step {
 public:
  WeightProductStep(const ConvPass& pass, const Form& form)
      : pass_(pass),
        plan_(form.plan),
        type_(type_of(pass)),
        patches_(form.patches),
        x_bytes_(patches_ ? room_for(patch_elements(pass, type_), type_) : copy_bytes(pass.x, x_sizes(pass))),
        y_bytes_(copy_bytes(pass.y, y_sizes(pass))) {}
  size_t workspace_bytes() const override {
    return x_bytes_ + y_bytes_ + static_cast<size_t>(plan_.parts * plan_.walk.weights) * sizeof(float);
  }
  std::string describe() const override {
    return fmt::format("tiles {}, x {}, y {}, {} blocks, {} parts", name_of(plan_.cut),
                       patches_        ? "as patches"
                       : x_bytes_ == 0 ? "in place"
                                       : "copied",
                       y_bytes_ == 0 ? "in place" : "copied", plan_.blocks, plan_.parts);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    run_from(bindings, workspace, false, context);
  }
  std::string_view left_copy() const override {
    const bool is_copied = grad_output_is_x() ? x_bytes_ > 0 && !patches_ : y_bytes_ > 0;
    return is_copied ? "channels last" : std::string_view{};
  }
  void run_with_copy(const Bindings& bindings, std::byte* workspace,
                     runtime::ExecutionContext& context) const override {
    run_from(bindings, workspace, true, context);
  }

 private:
  bool grad_output_is_x() const { return pass_.x.operand == problem::Operand::kGradOutput; }

  void run_from(const Bindings& bindings, std::byte* workspace, bool grad_output_is_there,
                runtime::ExecutionContext& context) const {
    const auto stream = stream_of(context);
    const kernels::cuda::Conv conv = bind(shape_of(pass_), pass_, bindings);
    // The copy of grad_output comes first: the next step may want it.
    const bool x_first = grad_output_is_x();
    std::byte* const second = workspace + (x_first ? x_bytes_ : y_bytes_);
    const void* const x =
        rows_of(conv, true, x_first ? workspace : second, x_first && grad_output_is_there, stream);
    const void* const y =
        rows_of(conv, false, x_first ? second : workspace, !x_first && grad_output_is_there, stream);
    if (!is_aligned(x) || !is_aligned(y)) return kernels::cuda::direct_grad_weight(conv, stream);
    auto* const parts = reinterpret_cast<float*>(workspace + x_bytes_ + y_bytes_);
    if (!kernels::cuda::wgmma_weight(plan_, type_, x, y, parts, stream))
      return kernels::cuda::direct_grad_weight(conv, stream);
    using kernels::cuda::WeightRepair;
    const auto repair = patches_ && leaves_source(pass_) ? WeightRepair::kEdges
                        : plan_.fills                    ? WeightRepair::kAll
                                                         : WeightRepair::kNone;
    const kernels::cuda::WeightParts sums{conv, repair, patches_, plan_.walk.x_channels, parts, plan_.parts};
    kernels::cuda::add_weight_parts(in_walked_parts(sums, plan_), stream);
  }

  const void* rows_of(const kernels::cuda::Conv& conv, bool is_x, std::byte* copy, bool is_there,
                      kernels::cuda::Stream stream) const {
    const kernels::cuda::Tensor& tensor = is_x ? conv.x : conv.y;
    if ((is_x ? x_bytes_ : y_bytes_) == 0) return tensor.data;
    if (is_there) return copy;
    if (is_x && patches_) {
      kernels::cuda::make_patch_rows(conv, type_, copy, stream);
      return copy;
    }
    kernels::cuda::Rows rows{};
    rows.batch = conv.batch;
    rows.groups = 1;
    rows.channels = is_x ? conv.x_channels : conv.y_channels;
    for (int i = 0; i < 3; ++i) rows.spatial[i] = is_x ? conv.axes[i].x : conv.axes[i].y;
    rows.source = tensor;
    rows.rounding = OperandRounding::kNone;
    kernels::cuda::make_rows(rows, type_, copy, stream);
    return copy;
  }

  ConvPass pass_;
  WeightPlan plan_;
  RowType type_;
  bool patches_;
  size_t x_bytes_, y_bytes_;
};

bool is_too_large(const ConvPass& p) {
  if (!fits_31_bits(x_sizes(p)) || !fits_31_bits(y_sizes(p))) return true;
  // Walks are longer than y by what lies between lines.
  Checked places = p.batch;
  for (const problem::Window& w : p.axes) places = places * (w.y + (w.kernel - 1) * w.dilation);
  return !places.get() || *places.get() >= int64_t{1} << 30;
}

class WeightProductsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.weight_products"; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr || conv->kind != ConvPassKind::kGradWeight) return Support::no("grad_weight only");
    if (conv->groups != 1) return Support::no("no groups");
    if (conv->x.dtype != conv->y.dtype || (conv->x.dtype != DType::kF16 && conv->x.dtype != DType::kBF16))
      return Support::no("needs f16 or bf16 operands");
    if (is_too_large(*conv)) return Support::no("needs 1 to 2^31 - 1 elements in x and y");
    if (!has_warpgroups(machine)) return Support::no("needs a GPU of compute capability 9.0");
    if (!form_of(*conv).found)
      return Support::no("few channels, many taps, or beyond what the copy engine reaches");
    return Support::yes();
  }
  // The plan's own time, in which parts are added, and copies of what does not lie as rows.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    const auto& conv = std::get<ConvPass>(pass);
    Times times(pass, machine);
    const auto add_copy = [&](double bytes) {
      if (bytes > 0) times.add_copy(bytes);
    };
    const Form form = form_of(conv);
    add_copy(form.patches ? patch_traffic(conv, type_of(conv)) / 2
                          : static_cast<double>(copy_bytes(conv.x, x_sizes(conv))));
    add_copy(static_cast<double>(copy_bytes(conv.y, y_sizes(conv))));
    times.add(form.plan.microseconds * kPacedProcessors / processors_of(machine), 2, bytes_of(conv));
    times.add(kEnds, 0);
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    const auto& conv = std::get<ConvPass>(pass);
    return std::make_unique<WeightProductStep>(conv, form_of(conv));
  }
};

}  // namespace

const Candidate& weight_products() {
  static const WeightProductsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda

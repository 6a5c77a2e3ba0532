// SPDX-License-Identifier: Apache-2.0
// Groups of up to 128 channels in NHWC, several groups a block: forward and grad_input in one launch,
// grad_weight in two.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engines/cuda/candidate.h"
#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/product_limits.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/group_boxes/group_rows.h"
#include "kernels/cuda/group_boxes/group_weights.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GroupProduct;
using kernels::cuda::GroupRows;
using kernels::cuda::GroupWeights;

// Whether they are of one 16-bit type, NHWC, channels in multiples of 8.
Support takes_groups(const ConvPass& p) {
  if (const Support support = takes_products(p); !support.accepted()) return support;
  if (size_of(p.x.dtype) != 2 || !has_one_wide_type(p))
    return Support::no("needs tensors of one type, f16 or bf16");
  if (!both_channels_last(p)) return Support::no("needs channels last");
  if (p.x_channels % 8 != 0 || p.y_channels % 8 != 0) return Support::no("needs channels in multiples of 8");
  return Support::yes();
}

// The same pass with its one axis, or without a window all places of all images, along H: boxes of whole rows
// are short then.
ConvPass in_one_line(ConvPass pass) {
  const bool is_plain = std::all_of(pass.axes.begin(), pass.axes.end(), [](const Window& w) {
    return w.kernel == 1 && w.pad_lo == 0 && w.x == w.y && (w.stride == 1 || w.x == 1);
  });
  const auto is_one = [](const Window& w) { return w.x == 1 && w.y == 1 && w.kernel == 1; };
  if (!is_plain) {
    if (!is_one(pass.axes[0]) || !is_one(pass.axes[1]) || pass.axes[1].pad_lo != 0) return pass;
    std::swap(pass.axes[1], pass.axes[2]);
    for (PassTensor* tensor : {&pass.x, &pass.y, &pass.w}) std::swap(tensor->strides[3], tensor->strides[4]);
    return pass;
  }
  int64_t places = pass.batch;
  for (Window& w : pass.axes) {
    places *= w.x;
    w.x = w.y = w.stride = w.dilation = 1;
  }
  pass.batch = 1;
  pass.axes[1].x = pass.axes[1].y = places;
  pass.x.strides = channels_last_strides(x_sizes(pass));
  pass.y.strides = channels_last_strides(y_sizes(pass));
  return pass;
}

GroupRows plan_rows(const ConvPass& pass) {
  const ConvPass line = in_one_line(pass);
  return kernels::cuda::group_rows_plan(shape_of(line), line.kind == ConvPassKind::kForward,
                                        product_axes(line));
}
GroupWeights plan_weights(const ConvPass& pass) {
  ConvPass line = in_one_line(pass);
  line.kind = ConvPassKind::kForward;  // whose axes they are
  return kernels::cuda::group_weights_plan(shape_of(line), product_axes(line).front());
}

std::string text_of(const GroupProduct& p) {
  return fmt::format("{} channels a block, boxes of {} x {} x {} x {}", p.tiles * 8, p.images,
                     p.axes[0].places, p.axes[1].places, p.axes[2].places);
}

class GroupStep : public Step {
 public:
  explicit GroupStep(const ConvPass& pass) : pass_(pass), line_(in_one_line(pass)) {}
  void run(const Bindings& bindings, std::byte* workspace, runtime::ExecutionContext& context) const final {
    const Conv conv = bind(line_, bindings);
    if (kernels::cuda::is_aligned(conv.x.data) && kernels::cuda::is_aligned(conv.y.data))
      return multiply(conv, reinterpret_cast<float*>(workspace), stream_of(context));
    run_directly(pass_.kind, bind(pass_, bindings), stream_of(context));
  }

 private:
  virtual void multiply(const Conv& line, float* sums, Stream stream) const = 0;
  ConvPass pass_, line_;
};

class GroupRowsStep final : public GroupStep {
 public:
  explicit GroupRowsStep(const ConvPass& pass) : GroupStep(pass), plan_(plan_rows(pass)) {}
  std::string describe() const override {
    const int residues = plan_.product.residues;
    return fmt::format("{}, {} residue{}", text_of(plan_.product), residues, residues == 1 ? "" : "s");
  }

 private:
  void multiply(const Conv& line, float* /*sums*/, Stream stream) const override {
    kernels::cuda::group_rows(line, plan_, stream);
  }
  GroupRows plan_;
};

class GroupWeightsStep final : public GroupStep {
 public:
  explicit GroupWeightsStep(const ConvPass& pass) : GroupStep(pass), plan_(plan_weights(pass)) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(plan_.cut.parts * plan_.cut.weights) * sizeof(float);
  }
  std::string describe() const override {
    return fmt::format("{}, {} parts", text_of(plan_.cut.product), plan_.cut.parts);
  }

 private:
  void multiply(const Conv& line, float* sums, Stream stream) const override {
    kernels::cuda::group_weights(line, plan_, sums, stream);
  }
  GroupWeights plan_;
};

Support has_room(bool fits, const GroupProduct& product, const Machine& machine) {
  if (fits && product.shared_bytes <= machine.gpu.shared_bytes) return Support::yes();
  return Support::no("needs few channels a group, and a window that fits into shared memory");
}
Support takes_rows(const ConvPass& p, const Machine& machine) {
  if (is_grad_weight(p)) return Support::no("forward and grad_input only");
  if (const Support support = takes_groups(p); !support.accepted()) return support;
  if (!are_weights_near(p)) return Support::no("weights beyond 32-bit counts");
  if (!is_few_residues(p)) return Support::no("more than 64 residues of the strides");
  const GroupRows plan = plan_rows(p);
  return has_room(plan.fits, plan.product, machine);
}
Support takes_weights(const ConvPass& p, const Machine& machine) {
  if (!is_grad_weight(p)) return Support::no("grad_weight only");
  if (const Support support = takes_groups(p); !support.accepted()) return support;
  const GroupWeights plan = plan_weights(p);
  return has_room(plan.fits, plan.cut.product, machine);
}

// The plans' own times, in which parts are added.
Effort effort_of_rows(const ConvPass& conv, const Machine& machine) {
  return paced(conv, plan_rows(conv).microseconds, 1, machine);
}
Effort effort_of_weights(const ConvPass& conv, const Machine& machine) {
  return paced(conv, plan_weights(conv).microseconds, 2, machine);
}

}  // namespace

const Candidate& group_rows() {
  static const ConvCandidate instance(
      {"cuda.group_rows", "convolutions only", takes_rows, effort_of_rows, make_step<GroupRowsStep>});
  return instance;
}
const Candidate& group_weights() {
  static const ConvCandidate instance({"cuda.group_weights", "grad_weight only", takes_weights,
                                       effort_of_weights, make_step<GroupWeightsStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// grad_weight of groups of up to 128 channels in NHWC: several groups a block, two launches.
#include "kernels/cuda/group_boxes/group_weights.h"

#include <fmt/format.h>

#include "engines/cuda/dense/product_axes.h"
#include "engines/cuda/direct.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/few_channels/group_pass.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/alignment.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GroupWeights;
using kernels::cuda::is_aligned;
using problem::ConvPass;
using problem::ConvPassKind;

GroupWeights plan_of(const ConvPass& pass) {
  ConvPass line = in_one_line(pass);
  line.kind = ConvPassKind::kForward;  // whose axes they are
  return kernels::cuda::group_weights_plan(shape_of(line), product_axes(line).front());
}

class GroupWeightsStep final : public Step {
 public:
  explicit GroupWeightsStep(const ConvPass& pass)
      : pass_(pass), line_(in_one_line(pass)), plan_(plan_of(pass)) {}
  size_t workspace_bytes() const override {
    return static_cast<size_t>(plan_.cut.parts * plan_.cut.weights) * sizeof(float);
  }
  std::string describe() const override {
    const kernels::cuda::GroupProduct& p = plan_.cut.product;
    return fmt::format("{} channels a block, boxes of {} x {} x {} x {}, {} parts", p.tiles * 8, p.images,
                       p.axes[0].places, p.axes[1].places, p.axes[2].places, plan_.cut.parts);
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(line_, bindings);
    if (is_aligned(conv.x.data) && is_aligned(conv.y.data))
      return kernels::cuda::group_weights(conv, plan_, reinterpret_cast<float*>(workspace),
                                          stream_of(context));
    run_directly(pass_.kind, bind(pass_, bindings), stream_of(context));
  }

 private:
  ConvPass pass_, line_;
  GroupWeights plan_;
};

Support supports(const ConvPass& conv, const Machine& machine) {
  if (conv.kind != ConvPassKind::kGradWeight) return Support::no("grad_weight only");
  if (const Support support = takes_groups(conv); !support.accepted()) return support;
  const GroupWeights plan = plan_of(conv);
  if (!plan.fits || plan.cut.product.shared_bytes > machine.gpu.shared_bytes)
    return Support::no("needs few channels a group, and a window that fits into shared memory");
  return Support::yes();
}

// The plan's own time, in which parts are added.
Effort effort(const ConvPass& conv, const Machine& machine) {
  return paced(conv, plan_of(conv).microseconds, 2, machine);
}

}  // namespace

const Candidate& group_weights() {
  static const ConvCandidate instance(
      {"cuda.group_weights", "grad_weight only", supports, effort, make_step<GroupWeightsStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda

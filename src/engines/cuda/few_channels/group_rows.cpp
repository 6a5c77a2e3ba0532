// SPDX-License-Identifier: Apache-2.0
// forward and grad_input of groups of up to 128 channels in NHWC: several groups a block, one launch.
#include "kernels/cuda/group_boxes/group_rows.h"

#include <fmt/format.h>

#include "engines/cuda/dense/gather_way.h"
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

using kernels::cuda::GroupRows;
using kernels::cuda::is_aligned;
using problem::ConvPass;
using problem::ConvPassKind;

GroupRows plan_of(const ConvPass& pass) {
  const ConvPass p = in_one_line(pass);
  return kernels::cuda::group_rows_plan(shape_of(p), p.kind == ConvPassKind::kForward, product_axes(p));
}

class GroupRowsStep final : public Step {
 public:
  explicit GroupRowsStep(const ConvPass& pass)
      : pass_(pass), line_(in_one_line(pass)), plan_(plan_of(pass)) {}
  std::string describe() const override {
    const kernels::cuda::GroupProduct& p = plan_.product;
    return fmt::format("{} channels a block, boxes of {} x {} x {} x {}, {} residue{}", p.tiles * 8, p.images,
                       p.axes[0].places, p.axes[1].places, p.axes[2].places, p.residues,
                       p.residues == 1 ? "" : "s");
  }
  void run(const Bindings& bindings, std::byte* /*workspace*/,
           runtime::ExecutionContext& context) const override {
    const kernels::cuda::Conv conv = bind(line_, bindings);
    if (is_aligned(conv.x.data) && is_aligned(conv.y.data))
      return kernels::cuda::group_rows(conv, plan_, stream_of(context));
    run_directly(pass_.kind, bind(pass_, bindings), stream_of(context));
  }

 private:
  ConvPass pass_, line_;
  GroupRows plan_;
};

Support takes(const ConvPass& p, const Machine& machine) {
  if (p.kind == ConvPassKind::kGradWeight) return Support::no("forward and grad_input only");
  if (const Support support = takes_groups(p); !support.accepted()) return support;
  if (!are_weights_near(p)) return Support::no("weights beyond 32-bit counts");
  if (!is_few_residues(p)) return Support::no("more than 64 residues of the strides");
  const GroupRows plan = plan_of(p);
  if (!plan.fits || plan.product.shared_bytes > machine.gpu.shared_bytes)
    return Support::no("needs few channels a group, and a window that fits into shared memory");
  return Support::yes();
}

// The plan's own time.
Effort effort(const ConvPass& conv, const Machine& machine) {
  return paced(conv, plan_of(conv).microseconds, 1, machine);
}

}  // namespace

const Candidate& group_rows() {
  static const ConvCandidate instance(
      {"cuda.group_rows", "convolutions only", takes, effort, make_step<GroupRowsStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda

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
#include "kernels/cuda/alignment.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::GroupRows;
using kernels::cuda::is_aligned;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr double kPacedProcessors = 132;  // which the plan's time is for

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
    const kernels::cuda::Conv conv = bind(shape_of(line_), line_, bindings);
    if (is_aligned(conv.x.data) && is_aligned(conv.y.data))
      return kernels::cuda::group_rows(conv, plan_, stream_of(context));
    run_directly(pass_.kind, bind(shape_of(pass_), pass_, bindings), stream_of(context));
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

class GroupRowsCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.group_rows"; }
  Support supports(const problem::Pass& pass, const Machine& machine) const override {
    const auto* conv = std::get_if<ConvPass>(&pass);
    if (conv == nullptr) return Support::no("convolutions only");
    return takes(*conv, machine);
  }
  // The plan's own time.
  Effort effort(const problem::Pass& pass, const Machine& machine) const override {
    const auto& p = std::get<ConvPass>(pass);
    Times times(pass, machine);
    times.add(plan_of(p).microseconds * kPacedProcessors / processors_of(machine), 1, bytes_of(p));
    return times.effort();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<GroupRowsStep>(std::get<ConvPass>(pass));
  }
};

}  // namespace

const Candidate& group_rows() {
  static const GroupRowsCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// Average pooling forward on dense NCHW or NHWC tensors: one launch, or two where long windows are cut into
// parts.
#include <fmt/format.h>

#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/pooling/pool_pass.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::engines::cuda {
namespace {

using problem::AvgPoolPass;

class PoolWindowsStep final : public Step {
 public:
  explicit PoolWindowsStep(const AvgPoolPass& pass)
      : pass_(pass),
        planes_(both_planes(pass)),
        choice_(kernels::cuda::forward_choice(shape_of(pass), !planes_)),
        sums_(kernels::cuda::forward_sums(shape_of(pass), choice_.kernel)) {}
  size_t workspace_bytes() const override { return static_cast<size_t>(sums_) * sizeof(float); }
  std::string describe() const override {
    return fmt::format("{}, {}{}", name_of(choice_.kernel), planes_ ? "planes" : "channels last",
                       sums_ > 0 ? ", windows in parts" : "");
  }
  void run(const Bindings& bindings, std::byte* workspace,
           runtime::ExecutionContext& context) const override {
    kernels::cuda::pool_forward(bind(pass_, bindings), !planes_, choice_, reinterpret_cast<float*>(workspace),
                                stream_of(context));
  }

 private:
  AvgPoolPass pass_;
  bool planes_;
  kernels::cuda::ForwardChoice choice_;
  int64_t sums_;
};

Support supports(const AvgPoolPass& pool, const Machine& /*machine*/) {
  if (!pool.forward) return Support::no("average pooling forward only");
  return is_dense_pool(pool);
}

Effort effort(const AvgPoolPass& pool, const Machine& machine) {
  Effort effort = on_fp32_units(effort_of(pool), pool, machine);
  const kernels::cuda::Pool shape = shape_of(pool);
  const auto kernel = kernels::cuda::forward_choice(shape, !both_planes(pool)).kernel;
  if (kernels::cuda::forward_sums(shape, kernel) > 0) effort.launches = 2;
  return effort;
}

}  // namespace

const Candidate& pool_windows() {
  static const PassCandidate<AvgPoolPass> instance(
      {"cuda.pool_windows", "average pooling forward only", supports, effort, make_step<PoolWindowsStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// One launch: planes or channels-last.
#include "kernels/cuda/pooling/pool.h"

#include <fmt/format.h>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"

namespace retrograd::engines::cuda {
namespace {

using problem::AvgPoolPass;

Sizes5 x_sizes(const AvgPoolPass& p) { return {p.batch, p.channels, p.axes[0].x, p.axes[1].x, p.axes[2].x}; }
Sizes5 y_sizes(const AvgPoolPass& p) { return {p.batch, p.channels, p.axes[0].y, p.axes[1].y, p.axes[2].y}; }
bool both_planes(const AvgPoolPass& p) {
  return is_planes(p.grad_input, x_sizes(p)) && is_planes(p.grad_output, y_sizes(p));
}
bool both_channels_last(const AvgPoolPass& p) {
  return is_channels_last(p.grad_input, x_sizes(p)) && is_channels_last(p.grad_output, y_sizes(p));
}

class PoolStep final : public Step {
 public:
  explicit PoolStep(const AvgPoolPass& pass)
      : pass_(pass), planes_(both_planes(pass)), kernels_([&](int alignment) {
          return kernels::cuda::pool_kernel(shape_of(pass), !planes_, alignment);
        }) {}
  std::string describe() const override {
    return fmt::format("{}, {}", kernels_.describe(size_of(pass_.grad_input.dtype)),
                       planes_ ? "planes" : "channels last");
  }
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    const kernels::cuda::Pool pool = bind(shape_of(pass_), pass_, bindings);
    const kernels::cuda::PoolKernel kernel =
        kernels_.at(kernels::cuda::alignment_of({pool.grad_input.data, pool.grad_output.data}));
    planes_ ? kernels::cuda::pool_planes(pool, kernel, stream_of(context))
            : kernels::cuda::pool_channels_last(pool, kernel, stream_of(context));
  }

 private:
  AvgPoolPass pass_;
  bool planes_;
  ByAlignment<kernels::cuda::PoolKernel> kernels_;
};

class PoolCandidate final : public Candidate {
 public:
  const char* name() const override { return "cuda.pool"; }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* pool = std::get_if<AvgPoolPass>(&pass);
    if (pool == nullptr) return Support::no("average pooling only");
    if (!is_wide_type(pool->grad_input.dtype) || pool->grad_input.dtype != pool->grad_output.dtype)
      return Support::no("needs f32, f16 or bf16, the same on both sides");
    if (!fits_31_bits(x_sizes(*pool)) || !fits_31_bits(y_sizes(*pool)))
      return Support::no("needs 1 to 2^31 - 1 elements");
    for (const problem::PoolWindow& axis : pool->axes)
      if (axis.x + axis.pad >= int64_t{1} << 30 || axis.kernel >= int64_t{1} << 30 ||
          axis.stride >= int64_t{1} << 30)
        return Support::no("needs windows under 2^30");
    if (!both_planes(*pool) && !both_channels_last(*pool))
      return Support::no("needs dense tensors of one layout, row-major or channels last");
    return Support::yes();
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<PoolStep>(std::get<AvgPoolPass>(pass));
  }
};

}  // namespace

const Candidate& pool() {
  static const PoolCandidate instance;
  return instance;
}

}  // namespace retrograd::engines::cuda

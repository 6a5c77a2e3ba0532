// SPDX-License-Identifier: Apache-2.0
// Average pooling on dense NCHW or NHWC tensors. Backward in one launch: four kernels, a candidate each.
// Forward in one launch, or two where long windows are cut into parts.
#include "kernels/cuda/pooling/pool.h"

#include <fmt/format.h>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/candidate.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::PoolKernel;

constexpr char kBackwardOnly[] = "average pooling backward only",
               kForwardOnly[] = "average pooling forward only";

// x and y of one type with fewer than 2^31 elements and one dense layout, and windows that 32 bits count.
Support is_dense_pool(const AvgPoolPass& pass) {
  if (!is_wide_type(pass.x.dtype) || pass.x.dtype != pass.y.dtype)
    return Support::no("needs f32, f16 or bf16, the same on both sides");
  if (!fits_31_bits(x_sizes(pass)) || !fits_31_bits(y_sizes(pass)))
    return Support::no("needs 1 to 2^31 - 1 elements");
  for (const problem::PoolWindow& axis : pass.axes)
    for (const int64_t size : {axis.x + axis.pad, axis.kernel, axis.stride})
      if (size >= int64_t{1} << 28) return Support::no("needs windows under 2^28");
  if (!both_planes(pass) && !both_channels_last(pass))
    return Support::no("needs dense tensors of one layout, row-major or channels last");
  return Support::yes();
}

class PoolStep final : public Step {
 public:
  PoolStep(const AvgPoolPass& pass, PoolKernel wanted)
      : pass_(pass), planes_(both_planes(pass)), kernels_([&](int alignment) {
          const kernels::cuda::Pool pool = shape_of(pass);
          return kernels::cuda::has_pool_kernel(wanted, pool, !planes_, alignment)
                     ? wanted
                     : kernels::cuda::pool_kernel(pool, !planes_, alignment);
        }) {
    for (const PoolKernel kernel : kernels_.all())
      if (kernel == PoolKernel::kColumns) cut_ = kernels::cuda::columns_cut(shape_of(pass), !planes_, false);
  }
  std::string describe() const override {
    return fmt::format("{}, {}", kernels_.describe(size_of(pass_.x.dtype)),
                       planes_ ? "planes" : "channels last");
  }
  void run(const Bindings& bindings, std::byte*, runtime::ExecutionContext& context) const override {
    const kernels::cuda::Pool pool = bind(pass_, bindings);
    const PoolKernel kernel = kernels_.at(kernels::cuda::alignment_of({pool.x.data, pool.y.data}));
    kernels::cuda::pool_backward(pool, !planes_, kernel, cut_, stream_of(context));
  }

 private:
  AvgPoolPass pass_;
  bool planes_;
  ByAlignment<PoolKernel> kernels_;
  kernels::cuda::ColumnsCut cut_;
};

// In the kernels' order; the last takes all.
constexpr const char* kNeeds[] = {
    "needs windows side by side without padding, one divisor, and rows or channels of whole vectors",
    "needs room for a tile in shared memory; channels last: no whole vectors of 16 bytes",
    "needs channels last, whole vectors of 16 bytes of them, strides of 64 rows at most, and 8 windows at "
    "most "
    "that hold a place along an axis",
    ""};

template <PoolKernel kKernel>
Support supports(const AvgPoolPass& pool, const Machine& /*machine*/) {
  constexpr int kAligned = 16;
  if (pool.forward) return Support::no(kBackwardOnly);
  if (const Support dense = is_dense_pool(pool); !dense.accepted()) return dense;
  const kernels::cuda::Pool shape = shape_of(pool);
  if (kKernel == PoolKernel::kColumns && kernels::cuda::is_too_deep(shape, false))
    return Support::no("windows span depths, and the input has {} of them, at most {} are taken",
                       shape.axes[0].x, kernels::cuda::kColumnsDepths);
  const bool has = kernels::cuda::has_pool_kernel(kKernel, shape, !both_planes(pool), kAligned);
  return has ? Support::yes() : Support::no(kNeeds[static_cast<size_t>(kKernel)]);
}

template <PoolKernel kKernel>
const Candidate& candidate(const char* name) {
  static const PassCandidate<AvgPoolPass> instance(
      {name, kBackwardOnly, supports<kKernel>,
       [](const AvgPoolPass& pass, const Machine& /*machine*/) { return effort_of(pass); },
       [](const AvgPoolPass& pass, const Machine& /*machine*/) -> std::unique_ptr<const Step> {
         return std::make_unique<PoolStep>(pass, kKernel);
       }});
  return instance;
}

struct Forward {
  struct Plan {
    bool last;
    kernels::cuda::ForwardChoice choice;
  };
  static Plan plan(const AvgPoolPass& pass) {
    const bool last = !both_planes(pass);
    return {last, kernels::cuda::forward_choice(shape_of(pass), last)};
  }
  static int64_t sums(const AvgPoolPass& pass, const Plan& plan) {
    return kernels::cuda::forward_sums(shape_of(pass), plan.choice.kernel);
  }
  static std::string describe(const AvgPoolPass& pass, const Plan& plan) {
    return fmt::format("{}, {}{}", name_of(plan.choice.kernel), plan.last ? "channels last" : "planes",
                       sums(pass, plan) > 0 ? ", windows in parts" : "");
  }
  static void launch(const AvgPoolPass& /*pass*/, const kernels::cuda::Pool& pool, const Plan& plan,
                     float* sums, Stream stream) {
    kernels::cuda::pool_forward(pool, plan.last, plan.choice, sums, stream);
  }
};

Support supports_forward(const AvgPoolPass& pool, const Machine& /*machine*/) {
  if (!pool.forward) return Support::no(kForwardOnly);
  return is_dense_pool(pool);
}

Effort effort_forward(const AvgPoolPass& pool, const Machine& machine) {
  Effort effort = on_fp32_units(effort_of(pool), pool, machine);
  if (Forward::sums(pool, Forward::plan(pool)) > 0) effort.launches = 2;
  return effort;
}

}  // namespace

const Candidate& pool_disjoint() { return candidate<PoolKernel::kDisjoint>("cuda.pool_disjoint"); }
const Candidate& pool_columns() { return candidate<PoolKernel::kColumns>("cuda.pool_columns"); }
const Candidate& pool_vectors() { return candidate<PoolKernel::kVectors>("cuda.pool_vectors"); }
const Candidate& pool_any() { return candidate<PoolKernel::kAny>("cuda.pool_any"); }

const Candidate& pool_windows() {
  static const PassCandidate<AvgPoolPass> instance(
      {"cuda.pool_windows", kForwardOnly, supports_forward, effort_forward, make_step<PlannedStep<Forward>>});
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// Average pooling on dense NCHW or NHWC tensors. Backward in one launch: four kernels, a candidate each.
// Forward in one launch, or two where long windows are cut into parts.
#include "kernels/cuda/pooling/pool.h"

#include <fmt/format.h>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/effort.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::PoolKernel;
using problem::AvgPoolPass;

constexpr char kBackwardOnly[] = "average pooling backward only",
               kForwardOnly[] = "average pooling forward only";

bool both_channels_last(const AvgPoolPass& p) {
  return is_channels_last(p.x, x_sizes(p)) && is_channels_last(p.y, y_sizes(p));
}

bool both_planes(const AvgPoolPass& p) { return is_planes(p.x, x_sizes(p)) && is_planes(p.y, y_sizes(p)); }

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

const char* needs(PoolKernel kernel) {
  switch (kernel) {
    case PoolKernel::kDisjoint:
      return "needs windows side by side without padding, one divisor, and rows or channels of whole vectors";
    case PoolKernel::kColumns:
      return "needs room for a tile in shared memory; channels last: no whole vectors of 16 bytes";
    case PoolKernel::kVectors:
      return "needs channels last, whole vectors of 16 bytes of them, strides of 64 rows at most, and 8 "
             "windows at most that hold a place along an axis";
    case PoolKernel::kAny:
      break;
  }
  return "";
}

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
  return has ? Support::yes() : Support::no(needs(kKernel));
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

Support supports_forward(const AvgPoolPass& pool, const Machine& /*machine*/) {
  if (!pool.forward) return Support::no(kForwardOnly);
  return is_dense_pool(pool);
}

Effort effort_forward(const AvgPoolPass& pool, const Machine& machine) {
  Effort effort = on_fp32_units(effort_of(pool), pool, machine);
  const kernels::cuda::Pool shape = shape_of(pool);
  const auto kernel = kernels::cuda::forward_choice(shape, !both_planes(pool)).kernel;
  if (kernels::cuda::forward_sums(shape, kernel) > 0) effort.launches = 2;
  return effort;
}

}  // namespace

const Candidate& pool_disjoint() { return candidate<PoolKernel::kDisjoint>("cuda.pool_disjoint"); }
const Candidate& pool_columns() { return candidate<PoolKernel::kColumns>("cuda.pool_columns"); }
const Candidate& pool_vectors() { return candidate<PoolKernel::kVectors>("cuda.pool_vectors"); }
const Candidate& pool_any() { return candidate<PoolKernel::kAny>("cuda.pool_any"); }

const Candidate& pool_windows() {
  static const PassCandidate<AvgPoolPass> instance(
      {"cuda.pool_windows", kForwardOnly, supports_forward, effort_forward, make_step<PoolWindowsStep>});
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on dense NCHW or NHWC tensors in one launch: four kernels, a candidate each.
#include "kernels/cuda/pooling/pool.h"

#include <fmt/format.h>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/pooling/pool_pass.h"
#include "engines/cuda/shapes.h"
#include "engines/pass_candidate.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::PoolKernel;
using problem::AvgPoolPass;

constexpr char kOthers[] = "average pooling backward only";

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
  if (pool.forward) return Support::no(kOthers);
  if (const Support dense = is_dense_pool(pool); !dense.accepted()) return dense;
  const bool has = kernels::cuda::has_pool_kernel(kKernel, shape_of(pool), !both_planes(pool), kAligned);
  return has ? Support::yes() : Support::no(needs(kKernel));
}

template <PoolKernel kKernel>
const Candidate& candidate(const char* name) {
  static const PassCandidate<AvgPoolPass> instance(
      {name, kOthers, supports<kKernel>,
       [](const AvgPoolPass& pass, const Machine& /*machine*/) { return effort_of(pass); },
       [](const AvgPoolPass& pass, const Machine& /*machine*/) -> std::unique_ptr<const Step> {
         return std::make_unique<PoolStep>(pass, kKernel);
       }});
  return instance;
}

}  // namespace

const Candidate& pool_disjoint() { return candidate<PoolKernel::kDisjoint>("cuda.pool_disjoint"); }
const Candidate& pool_columns() { return candidate<PoolKernel::kColumns>("cuda.pool_columns"); }
const Candidate& pool_vectors() { return candidate<PoolKernel::kVectors>("cuda.pool_vectors"); }
const Candidate& pool_any() { return candidate<PoolKernel::kAny>("cuda.pool_any"); }

}  // namespace retrograd::engines::cuda

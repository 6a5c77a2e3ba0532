// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on dense NCHW or NHWC tensors in one launch: four kernels, a candidate each.
#include "kernels/cuda/pooling/pool.h"

#include <fmt/format.h>

#include "engines/cuda/by_alignment.h"
#include "engines/cuda/implementations.h"
#include "engines/cuda/pooling/pool_pass.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/pooling/pool_columns_plan.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::PoolKernel;
using problem::AvgPoolPass;

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
    const kernels::cuda::Pool pool = bind(shape_of(pass_), pass_, bindings);
    const PoolKernel kernel = kernels_.at(kernels::cuda::alignment_of({pool.x.data, pool.y.data}));
    kernels::cuda::pool_backward(pool, !planes_, kernel, cut_, stream_of(context));
  }

 private:
  AvgPoolPass pass_;
  bool planes_;
  ByAlignment<PoolKernel> kernels_;
  kernels::cuda::ColumnsCut cut_;
};

class PoolCandidate final : public Candidate {
 public:
  explicit PoolCandidate(PoolKernel kernel)
      : kernel_(kernel), name_(fmt::format("cuda.pool_{}", name_of(kernel))) {}
  const char* name() const override { return name_.c_str(); }
  Support supports(const problem::Pass& pass, const Machine& /*machine*/) const override {
    const auto* pool = std::get_if<AvgPoolPass>(&pass);
    if (pool == nullptr || pool->forward) return Support::no("average pooling backward only");
    if (const Support dense = is_dense_pool(*pool); !dense.accepted()) return dense;
    const bool has = kernels::cuda::has_pool_kernel(kernel_, shape_of(*pool), !both_planes(*pool), kAligned);
    return has ? Support::yes() : Support::no(needs());
  }
  Effort effort(const problem::Pass& pass, const Machine& /*machine*/) const override {
    return effort_of(pass);
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<PoolStep>(std::get<AvgPoolPass>(pass), kernel_);
  }

 private:
  const char* needs() const {
    switch (kernel_) {
      case PoolKernel::kDisjoint:
        return "needs windows side by side without padding, one divisor, and rows or channels of whole "
               "vectors";
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
  static constexpr int kAligned = 16;
  PoolKernel kernel_;
  std::string name_;
};

}  // namespace

const Candidate& pool_disjoint() {
  static const PoolCandidate instance(PoolKernel::kDisjoint);
  return instance;
}
const Candidate& pool_columns() {
  static const PoolCandidate instance(PoolKernel::kColumns);
  return instance;
}
const Candidate& pool_vectors() {
  static const PoolCandidate instance(PoolKernel::kVectors);
  return instance;
}
const Candidate& pool_any() {
  static const PoolCandidate instance(PoolKernel::kAny);
  return instance;
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on dense NCHW or NHWC tensors in one launch: six kernels, a candidate each.
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
      if (kernel == PoolKernel::kColumns) cut_ = kernels::cuda::columns_cut(shape_of(pass), !planes_);
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
  // Windows side by side in rows that are no whole vectors are read and written element by element.
  Effort effort(const problem::Pass& pass, const Machine& /*machine*/) const override {
    constexpr double kScattered = 3.8;
    const auto& pool = std::get<AvgPoolPass>(pass);
    Effort effort = effort_of(pass);
    const int64_t vector = 16 / static_cast<int64_t>(size_of(pool.x.dtype));
    if (kernel_ == PoolKernel::kDisjoint && both_planes(pool) && row_of(pool) % vector != 0)
      effort.bytes *= kScattered;
    return effort;
  }
  std::unique_ptr<const Step> make_step(const problem::Pass& pass,
                                        const Machine& /*machine*/) const override {
    return std::make_unique<PoolStep>(std::get<AvgPoolPass>(pass), kernel_);
  }

 private:
  // Planes that are one window each make up one long row.
  static int64_t row_of(const AvgPoolPass& pool) {
    const auto whole = [](const problem::PoolWindow& a) { return a.y == 1 && a.kernel == a.x; };
    const auto untouched = [](const problem::PoolWindow& a) { return a.kernel == 1 && a.stride == 1; };
    const auto& [d, h, w] = pool.axes;
    if (!whole(h) || !whole(w)) return w.x;
    const int64_t plane = h.x * w.x;
    return whole(d) || untouched(d) ? pool.batch * pool.channels * d.x * plane : plane;
  }
  const char* needs() const {
    switch (kernel_) {
      case PoolKernel::kDisjoint:
        return "needs windows side by side without padding, and one divisor";
      case PoolKernel::kStaged:
        return "needs 3x3 with padding 1 and stride 1, small row-major planes, and one divisor";
      case PoolKernel::kSliding:
        return "needs 3x3 with padding 1 and stride 1 or 2, row-major planes, and one divisor";
      case PoolKernel::kColumns:
        return "needs 16 windows at most that hold a place along an axis, and room for a tile in shared "
               "memory; "
               "channels last: no whole vectors of 16 bytes";
      case PoolKernel::kVectors:
        return "needs channels last, whole vectors of 16 bytes of them, and 8 windows at most that hold a "
               "place "
               "along an axis";
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
const Candidate& pool_staged() {
  static const PoolCandidate instance(PoolKernel::kStaged);
  return instance;
}
const Candidate& pool_sliding() {
  static const PoolCandidate instance(PoolKernel::kSliding);
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

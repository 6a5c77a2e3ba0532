// SPDX-License-Identifier: Apache-2.0
// GPU kernels in a build without CUDA: empty launchers. Plans for GPUs are made in every build (`explain
// --machine`, tests), but nothing runs them here.
#include <cstdio>
#include <cstdlib>

#include "kernels/cuda/bias/bias.h"
#include "kernels/cuda/dense/gather_in_place.h"
#include "kernels/cuda/dense/gather_product.h"
#include "kernels/cuda/dense/pointwise.h"
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/dense_weight/few_places.h"
#include "kernels/cuda/dense_weight/plane_weight_plan.h"
#include "kernels/cuda/dense_weight/tap_weight.h"
#include "kernels/cuda/dense_weight/weight_parts.h"
#include "kernels/cuda/dense_weight/weight_product_plan.h"
#include "kernels/cuda/dense_weight/wgmma_weight.h"
#include "kernels/cuda/depthwise/depthwise.h"
#include "kernels/cuda/depthwise_nhwc/depthwise_last_plan.h"
#include "kernels/cuda/depthwise_windows/segments_plan.h"
#include "kernels/cuda/depthwise_windows/staged_plan.h"
#include "kernels/cuda/depthwise_windows/windows_plan.h"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/few_channels/narrow.h"
#include "kernels/cuda/group_boxes/group_rows.h"
#include "kernels/cuda/group_boxes/group_weights.h"
#include "kernels/cuda/layout/channel_rows.h"
#include "kernels/cuda/layout/relayout.h"
#include "kernels/cuda/layout/scratch.h"
#include "kernels/cuda/pooling/pool.h"
#include "kernels/cuda/pooling_forward/pool_forward.h"
#include "kernels/cuda/small_images.h"
#include "kernels/cuda/stems/box_plan.h"
#include "kernels/cuda/stems/few_terms_plan.h"
#include "kernels/cuda/stems/stem_plan.h"

namespace retrograd::kernels::cuda {
namespace {

[[noreturn]] void not_here() {
  std::fputs("retrograd: no GPU code in this build\n", stderr);
  std::abort();
}

}  // namespace

void bias_planes(const Bias&, float*, Stream) { not_here(); }
void bias_channels_last(const Bias&, float*, Stream) { not_here(); }

void gather_product(const GatherProduct&, std::span<const ProductAxes>, Stream) { not_here(); }
void gather_in_place(const GatherProduct&, InPlaceForm, const InPlaceCut&, std::span<const ProductAxes>,
                     Stream) {
  not_here();
}
void group_rows(const Conv&, const GroupRows&, Stream) { not_here(); }
void group_weights(const Conv&, const GroupWeights&, float*, Stream) { not_here(); }
void clear(void*, size_t, Stream) { not_here(); }
void plane_weight(const PlaneWeight&, Stream) { not_here(); }
void weight_product(const WeightProduct&, Stream) { not_here(); }
void add_weight_parts(const WeightParts&, Stream) { not_here(); }
bool wgmma_gather(const GatherProduct&, const GatherLaunch&, Stream) { not_here(); }
bool wgmma_weight(const WeightPlan&, RowType, const void*, const void*, void*, float*, Stream) { not_here(); }
bool pointwise(const PointwisePlan&, const Conv&, Result, RowType, void*, float*, Stream) { not_here(); }
void few_places(const FewPlaces&, Stream) { not_here(); }
void tap_weight(const TapPlan&, RowType, const void*, const void*, void*, float*, Stream) { not_here(); }

void depthwise_grad_input(const Conv&, DepthwiseKernel, Stream) { not_here(); }
void depthwise_grad_weight(const Conv&, DepthwiseKernel, float*, Stream) { not_here(); }
void depthwise_tiles_gather(const Conv&, bool, TilesKernel, Stream) { not_here(); }
void depthwise_tiles_grad_weight(const Conv&, TilesKernel, float*, Stream) { not_here(); }
void segments_gather(const Conv&, bool, const GatherSegments&, Stream) { not_here(); }
void segments_grad_weight(const Conv&, const WeightSegments&, float*, Stream) { not_here(); }
void staged_gather(const Conv&, bool, const StagedPlan&, Stream) { not_here(); }
void staged_grad_weight(const Conv&, const StagedWeightPlan&, float*, Stream) { not_here(); }
void windows_gather(const Conv&, bool, const GatherWindows&, Stream) { not_here(); }
void windows_grad_weight(const Conv&, const WeightWindows&, float*, Stream) { not_here(); }
void depthwise_last_gather(const Conv&, bool, const LastPlan&, Stream) { not_here(); }
void depthwise_last_grad_weight(const Conv&, const LastPlan&, float*, Stream) { not_here(); }

void direct_forward(const Conv&, Stream) { not_here(); }
void direct_grad_input(const Conv&, Stream) { not_here(); }
void direct_grad_weight(const Conv&, Stream) { not_here(); }
void direct_bias(const Bias&, Stream) { not_here(); }
void direct_pool(const Pool&, Stream) { not_here(); }
void direct_pool_forward(const Pool&, Stream) { not_here(); }

void box_products(const Conv&, const BoxPlan&, Stream) { not_here(); }
void few_terms(const Conv&, const FewTermsPlan&, Stream) { not_here(); }
void group_grad_input(const Conv&, bool, Stream) { not_here(); }
void group_grad_weight(const Conv&, bool, float*, Stream) { not_here(); }
void block_grad_input(const Conv&, bool, Stream) { not_here(); }
void stem_grad_weight(const Conv&, bool, float*, Stream) { not_here(); }
void stem_gather(const Conv&, const StemPlan&, Stream) { not_here(); }
void narrow_tiles_grad_input(const Conv&, bool, Stream) { not_here(); }
void narrow_tiles_grad_weight(const Conv&, bool, float*, Stream) { not_here(); }

void make_rows(const Rows&, RowType, void*, Stream) { not_here(); }
void make_patch_rows(const Conv&, RowType, void*, Stream) { not_here(); }
void add_columns(const Conv&, const float*, Stream) { not_here(); }
void make_patch_planes(const Conv&, RowType, void*, Stream) { not_here(); }
void make_patch_weights(const Conv&, RowType, void*, Stream) { not_here(); }
void make_weight_rows(const Conv&, bool, RowType, void*, Stream) { not_here(); }
void relayout(const int64_t (&)[5], const Tensor&, const Tensor&, Stream) { not_here(); }
void* take_scratch(size_t, Stream) { not_here(); }
void give_back_scratch(void*, Stream) { not_here(); }
void copy_bytes(void*, const void*, size_t, Stream) { not_here(); }
void clear_bytes(void*, size_t, Stream) { not_here(); }
void make_filter(const Conv&, int64_t, int64_t, RowType, void*, Stream) { not_here(); }
void take_filter(const Conv&, int64_t, int64_t, RowType, const void*, Stream) { not_here(); }
void take_rows(const Conv&, Result, int64_t, RowType, const void*, Stream) { not_here(); }

void pool_backward(const Pool&, bool, PoolKernel, const ColumnsCut&, Stream) { not_here(); }
void pool_forward(const Pool&, bool, const ForwardChoice&, float*, Stream) { not_here(); }

void small_grad_input(const Conv&, Stream) { not_here(); }
void small_grad_weight(const Conv&, float*, Stream) { not_here(); }

}  // namespace retrograd::kernels::cuda

// SPDX-License-Identifier: Apache-2.0
// Copies of operands to rows of channels where they are needed, then the product.
#include "engines/cuda/dense/weight_step.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/dense/row_operand.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/direct.h"
#include "kernels/cuda/layout/patch_rows.h"
#include "kernels/cuda/layout/results.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using kernels::cuda::RowType;
using kernels::cuda::WeightResults;
using problem::ConvPass;
using problem::PassTensor;

constexpr int64_t kChunk = 8;  // channels of 16 bytes

// Bytes of the copy that a tensor needs; 0: it is rows already.
size_t copy_bytes(const PassTensor& tensor, const Sizes5& sizes) {
  if (sizes[1] % kChunk == 0 && is_channels_last(tensor, sizes)) return 0;
  const int64_t filled = ceil_div(sizes[1], kChunk) * kChunk;
  return static_cast<size_t>((sizes[0] * sizes[2] * sizes[3] * sizes[4] * filled * 2 + 255) / 256 * 256);
}

}  // namespace

RowType weight_row_type(const ConvPass& pass) {
  return pass.x.dtype == DType::kF16 ? RowType::kF16 : RowType::kBF16;
}

WeightStep::WeightStep(const ConvPass& pass, bool patches)
    : pass_(pass),
      type_(weight_row_type(pass)),
      patches_(patches),
      x_bytes_(patches ? room_for(patch_elements(pass, type_), type_) : copy_bytes(pass.x, x_sizes(pass))),
      y_bytes_(copy_bytes(pass.y, y_sizes(pass))) {}

void WeightStep::run(const Bindings& bindings, std::byte* workspace,
                     runtime::ExecutionContext& context) const {
  run_from(bindings, workspace, false, context);
}

std::string_view WeightStep::left_copy() const {
  const bool is_copied = grad_output_is_x() ? x_bytes_ > 0 && !patches_ : y_bytes_ > 0;
  return is_copied ? "channels last" : std::string_view{};
}

void WeightStep::run_with_copy(const Bindings& bindings, std::byte* workspace,
                               runtime::ExecutionContext& context) const {
  run_from(bindings, workspace, true, context);
}

std::string WeightStep::describe_rows() const {
  return fmt::format("x {}, y {}",
                     patches_        ? "as patches"
                     : x_bytes_ == 0 ? "in place"
                                     : "copied",
                     y_bytes_ == 0 ? "in place" : "copied");
}

size_t WeightStep::result_bytes(WeightResults results, int64_t sums) {
  switch (results) {
    case WeightResults::kInPlace:
      return 0;
    case WeightResults::kFilter:
      return static_cast<size_t>(sums) * 2;
    case WeightResults::kParts:
      break;
  }
  return static_cast<size_t>(sums) * sizeof(float);
}

void* WeightStep::target_of(WeightResults results, const kernels::cuda::Conv& conv, std::byte* workspace) {
  if (results == WeightResults::kParts) return nullptr;
  return results == WeightResults::kInPlace ? conv.w.data : workspace;
}

void WeightStep::take_results(WeightResults results, const kernels::cuda::Conv& conv, int64_t filled,
                              const std::byte* workspace, kernels::cuda::Stream stream) const {
  if (results == WeightResults::kFilter)
    kernels::cuda::take_filter(conv, conv.y_channels, filled, type_, workspace, false, stream);
}

void WeightStep::run_from(const Bindings& bindings, std::byte* workspace, bool grad_output_is_there,
                          runtime::ExecutionContext& context) const {
  const auto stream = stream_of(context);
  const kernels::cuda::Conv conv = bind(shape_of(pass_), pass_, bindings);
  // The copy of grad_output comes first: the next step may want it.
  const bool x_first = grad_output_is_x();
  std::byte* const second = workspace + (x_first ? x_bytes_ : y_bytes_);
  const void* const x =
      rows_of(conv, true, x_first ? workspace : second, x_first && grad_output_is_there, stream);
  const void* const y =
      rows_of(conv, false, x_first ? second : workspace, !x_first && grad_output_is_there, stream);
  if (!is_aligned(x) || !is_aligned(y) || !multiply(conv, x, y, workspace + x_bytes_ + y_bytes_, stream))
    kernels::cuda::direct_grad_weight(conv, stream);
}

const void* WeightStep::rows_of(const kernels::cuda::Conv& conv, bool is_x, std::byte* copy, bool is_there,
                                kernels::cuda::Stream stream) const {
  const kernels::cuda::Tensor& tensor = is_x ? conv.x : conv.y;
  if ((is_x ? x_bytes_ : y_bytes_) == 0) return tensor.data;
  if (is_there) return copy;
  if (is_x && patches_)
    kernels::cuda::make_patch_rows(conv, type_, copy, stream);
  else
    make_rows(conv, tensor, is_x, type_, copy, stream);
  return copy;
}

void add_row_copies(const ConvPass& pass, Times* times, bool patches) {
  const double x = patches ? patch_traffic(pass, weight_row_type(pass)) / 2
                           : static_cast<double>(copy_bytes(pass.x, x_sizes(pass)));
  for (const double bytes : {x, static_cast<double>(copy_bytes(pass.y, y_sizes(pass)))})
    if (bytes > 0) times->add_copy(bytes);
}

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// Copies of operands to rows of channels where they are needed, then the product.
#include "engines/cuda/dense/weight_step.h"

#include <fmt/format.h>

#include "base/checked.h"
#include "engines/cuda/dense/patches.h"
#include "engines/cuda/layouts.h"
#include "engines/cuda/shapes.h"
#include "kernels/cuda/alignment.h"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::is_aligned;
using kernels::cuda::WeightResults;

constexpr int64_t kChunk = 8;  // channels of 16 bytes

// Bytes of the copy that a tensor needs; 0: it is rows already.
size_t copy_bytes(const PassTensor& tensor, const Sizes5& sizes) {
  if (sizes[1] % kChunk == 0 && is_channels_last(tensor, sizes)) return 0;
  const int64_t filled = ceil_div(sizes[1], kChunk) * kChunk;
  return room_of({sizes[0], filled, sizes[2], sizes[3], sizes[4]}, tensor.dtype);
}

}  // namespace

WeightStep::WeightStep(const ConvPass& pass, bool patches)
    : pass_(pass),
      type_(half_row_type(pass)),
      patches_(patches),
      x_bytes_(patches ? room_for(patch_elements(pass, type_), type_) : copy_bytes(pass.x, x_sizes(pass))),
      y_bytes_(copy_bytes(pass.y, y_sizes(pass))),
      rows_(pass, type_, patches ? 0 : x_bytes_, y_bytes_) {}

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

void* WeightStep::target_of(WeightResults results, const Conv& conv, std::byte* workspace) {
  if (results == WeightResults::kParts) return nullptr;
  return results == WeightResults::kInPlace ? conv.w.data : workspace;
}

void WeightStep::take_results(WeightResults results, const Conv& conv, int64_t filled,
                              const std::byte* workspace, Stream stream) const {
  if (results == WeightResults::kFilter)
    kernels::cuda::take_filter(conv, conv.groups * conv.y_channels, filled, type_, workspace, stream);
}

void WeightStep::run(const Bindings& bindings, std::byte* workspace,
                     runtime::ExecutionContext& context) const {
  const auto stream = stream_of(context);
  const Conv conv = bind(pass_, bindings);
  std::byte* const patches = workspace + rows_.bytes;
  if (patches_) kernels::cuda::make_patch_rows(conv, type_, patches, stream);
  const void* const x = x_bytes_ == 0 ? conv.x.data : patches_ ? patches : workspace + rows_.x_at;
  const void* const y = y_bytes_ == 0 ? conv.y.data : workspace + rows_.y_at;
  if (!is_aligned(x) || !is_aligned(y) || !multiply(conv, x, y, workspace + x_bytes_ + y_bytes_, stream))
    run_directly(ConvPassKind::kGradWeight, conv, stream);
}

void add_row_copies(const ConvPass& pass, Times* times, bool patches) {
  if (patches) times->add_elements(static_cast<double>(patch_elements(pass, half_row_type(pass))));
  const auto x = patches ? 0 : static_cast<double>(copy_bytes(pass.x, x_sizes(pass)));
  for (const double bytes : {x, static_cast<double>(copy_bytes(pass.y, y_sizes(pass)))})
    if (bytes > 0) times->add_copy(bytes);
}

}  // namespace retrograd::engines::cuda

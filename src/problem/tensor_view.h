// SPDX-License-Identifier: Apache-2.0
// TensorView: one operand as sizes and strides. Layouts, slices, broadcasts and reversals are all just
// strides.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/dims.h"
#include "base/dtype.h"
#include "base/status.h"

namespace retrograd::problem {

struct TensorView {
  DType dtype = DType::kF32;
  Dims shape;
  Dims strides;  // in elements; the element at index 0…0 is where the operand's address points
  // Where the caller said how large the storage is: the view must stay inside it.
  int64_t offset = 0;
  std::optional<Dims> storage_shape;
};

// A row-major view; its strides are 0 where the sizes multiply beyond 64 bits, which check_view then reports.
TensorView dense_view(DType dtype, const Dims& shape);
bool is_dense(const TensorView& view);
// Axes behind those of the batch and the channels.
size_t spatial_axes(const TensorView& view);

// nullopt when the product overflows or a size is negative.
std::optional<int64_t> element_count(const Dims& shape);

// The lowest and highest element offset a non-empty view touches, from the address of its first element.
struct OffsetRange {
  int64_t lowest = 0;
  int64_t highest = 0;
};
std::optional<OffsetRange> offset_range(const TensorView& view);

// Sizes at least 0, nothing overflows (bytes included), the view inside its storage. `name` is for the
// message.
Status check_view(const TensorView& view, std::string_view name);
// check_view, and no two indices share an element.
Status check_output_view(const TensorView& view, std::string_view name);
// True when two indices share an element. Exact, by a bounded search for a vanishing combination of strides;
// a view that the bound does not decide (only contrived ones) counts as overlapping.
bool overlaps_itself(const TensorView& view);

}  // namespace retrograd::problem

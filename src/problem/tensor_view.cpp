// SPDX-License-Identifier: Apache-2.0
// Judges views: sizes, overflow, storage bounds, and whether an output's elements are all distinct.
#include "problem/tensor_view.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "base/checked.h"

namespace retrograd::problem {
namespace {

enum class Overlap { kNone, kFound, kUndecided };

// Does Σ dᵢ·strideᵢ = 0 have a solution other than zero with |dᵢ| < sizeᵢ? Two indices share an element
// exactly then: their difference is such a d. Axes are tried from the largest stride down; an axis can only
// take values that the remaining axes are able to cancel, which for the layouts people use leaves one value
// an axis.
class OverlapSearch {
 public:
  explicit OverlapSearch(const TensorView& view) {
    for (int i = 0; i < view.shape.rank(); ++i)
      if (view.shape[i] > 1) axes_[count_++] = {std::abs(view.strides[i]), view.shape[i] - 1};
    std::sort(axes_.begin(), axes_.begin() + count_,
              [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
    for (size_t i = count_; i-- > 0;)
      reach_[i] = reach_[i + 1] + axes_[i].stride * axes_[i].last;  // fits: check_view came first
  }

  Overlap result() {
    if (visit(0, 0, false)) return Overlap::kFound;
    return budget_ == 0 ? Overlap::kUndecided : Overlap::kNone;
  }

 private:
  struct Axis {
    int64_t stride;
    int64_t last;
  };

  bool visit(size_t axis, int64_t sum, bool nonzero) {
    if (budget_ == 0) return false;
    --budget_;
    if (axis == count_) return nonzero && sum == 0;
    const auto [stride, last] = axes_[axis];
    if (stride == 0) return true;
    // sum + d·stride must lie within ±reach of the axes that are left.
    const int64_t rest = reach_[axis + 1];
    const int64_t lowest = std::max(-last, ceil_div(-rest - sum, stride));
    const int64_t highest = std::min(last, floor_div(rest - sum, stride));
    // d and −d are the same pair of indices: until something is nonzero, only d ≥ 0 need be tried.
    // The range may be as long as the axis, and each value costs something even without a visit.
    for (int64_t d = nonzero ? lowest : std::max<int64_t>(lowest, 0); d <= highest && budget_ > 0; ++d)
      if (visit(axis + 1, sum + d * stride, nonzero || d != 0)) return true;
    return false;
  }

  std::array<Axis, Dims::kMaxRank> axes_{};
  size_t count_ = 0;
  std::array<int64_t, Dims::kMaxRank + 1> reach_{};  // the largest |Σ| that axes i, i + 1, … can make
  int64_t budget_ = 100'000;                         // a few milliseconds; only contrived strides use it up
};

Overlap overlap_of(const TensorView& view) {
  if (element_count(view.shape).value_or(0) <= 1) return Overlap::kNone;
  return OverlapSearch(view).result();
}

Status overflow(std::string_view name, const TensorView& view) {
  return Status(Code::kBadShape, "{}.shape is {} with strides {}: its addresses do not fit in 64 bits", name,
                to_string(view.shape), to_string(view.strides));
}

}  // namespace

TensorView dense_view(DType dtype, const Dims& shape) {
  TensorView view{
      .dtype = dtype, .shape = shape, .strides = Dims::filled(shape.rank(), 0), .storage_shape = {}};
  Checked step = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    view.strides[i] = step.get().value_or(0);
    step = step * std::max<int64_t>(shape[i], 1);
  }
  return view;
}

size_t spatial_axes(const TensorView& view) {
  return static_cast<size_t>(std::max(view.shape.rank() - 2, 0));
}

bool is_dense(const TensorView& view) {
  const TensorView dense = dense_view(view.dtype, view.shape);
  for (int i = 0; i < view.shape.rank(); ++i)
    if (view.shape[i] > 1 && view.strides[i] != dense.strides[i]) return false;
  return true;
}

std::optional<int64_t> element_count(const Dims& shape) {
  // An empty tensor may have other sizes whose product alone would overflow: it is empty all the same.
  bool is_empty = false, overflows = false;
  int64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0) return std::nullopt;
    is_empty |= size == 0;
    overflows |= __builtin_mul_overflow(count, size, &count);
  }
  if (is_empty) return 0;
  return overflows ? std::nullopt : std::optional(count);
}

std::optional<OffsetRange> offset_range(const TensorView& view) {
  Checked lowest = 0, highest = 0;
  for (int i = 0; i < view.shape.rank(); ++i) {
    const Checked reach = Checked(view.strides[i]) * (view.shape[i] - 1);
    if (view.strides[i] < 0) {
      lowest = lowest + reach;
    } else {
      highest = highest + reach;
    }
  }
  if (!lowest.get() || !highest.get()) return std::nullopt;
  return OffsetRange{*lowest.get(), *highest.get()};
}

Status check_view(const TensorView& view, std::string_view name) {
  for (int i = 0; i < view.shape.rank(); ++i)
    if (view.shape[i] < 0)
      return Status(Code::kBadShape, "{}.shape[{}] is {}, sizes are at least 0", name, i, view.shape[i]);
  const auto count = element_count(view.shape);
  if (!count)
    return Status(Code::kBadShape, "{}.shape is {}: the product of its sizes does not fit in 64 bits", name,
                  to_string(view.shape));
  if (*count == 0) return Status::ok();

  const auto range = offset_range(view);
  if (!range) return overflow(name, view);
  const auto width = static_cast<int64_t>(size_of(view.dtype));
  // Twice over, so that sums of two offsets fit as well.
  const Checked bytes = (Checked(range->highest) - range->lowest + 1) * width * 2;
  if (!bytes.get() || !(Checked(range->lowest) * width).get() || !(Checked(*count) * width).get())
    return overflow(name, view);

  if (view.storage_shape) {
    const auto storage = element_count(*view.storage_shape);
    if (!storage)
      return Status(Code::kBadStrides, "{}.storageDims is {}: not the sizes of a storage", name,
                    to_string(*view.storage_shape));
    const auto first = checked_add(view.offset, range->lowest);
    const auto last = checked_add(view.offset, range->highest);
    if (!first || !last || *first < 0 || *last >= *storage)
      return Status(Code::kBadStrides,
                    "{} leaves its storage: shape {}, strides {}, offset {} touch elements {} to {}, the "
                    "storage holds 0 to {}",
                    name, to_string(view.shape), to_string(view.strides), view.offset,
                    first ? fmt::to_string(*first) : "beyond 64 bits",
                    last ? fmt::to_string(*last) : "beyond 64 bits", *storage - 1);
  }
  return Status::ok();
}

Status check_output_view(const TensorView& view, std::string_view name) {
  RG_CHECK(check_view(view, name));
  const Overlap overlap = overlap_of(view);
  if (overlap == Overlap::kNone) return Status::ok();
  return Status(Code::kBadStrides,
                "{}.strides is {} for shape {}: {}two elements share an address, an output's must all "
                "differ",
                name, to_string(view.strides), to_string(view.shape),
                overlap == Overlap::kUndecided ? "it could not be decided whether " : "");
}

bool overlaps_itself(const TensorView& view) { return overlap_of(view) != Overlap::kNone; }

}  // namespace retrograd::problem

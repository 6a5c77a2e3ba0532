// SPDX-License-Identifier: Apache-2.0
// ViewMemory, measured with the library's own view arithmetic.
#include "view_memory.h"

#include <algorithm>

#include "problem/tensor_view.h"

namespace retrograd::fuzz {

ViewMemory::ViewMemory(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides,
                       size_t element_size)
    : element_size_(std::max<size_t>(element_size, 1)) {
  if (shape.size() > Dims::kMaxRank) return;
  problem::TensorView view = problem::dense_view(DType::kF32, Dims(shape));
  if (!strides.empty()) view.strides = Dims(strides);
  const auto count = problem::element_count(view.shape);
  if (!count || *count > kMaxElements) return;
  if (*count > 0) {
    const auto range = problem::offset_range(view);
    if (!range || range->lowest < -kMaxElements || range->highest > kMaxElements) return;
    lowest_ = range->lowest;
    highest_ = range->highest;
  }
  elements_ = *count;
  small_ = true;
  bytes_.resize(elements_ == 0 ? 0 : static_cast<size_t>(highest_ - lowest_ + 1) * element_size_);
  for (size_t i = 0; i < bytes_.size(); ++i) bytes_[i] = static_cast<unsigned char>(i * 37 % 64);
}

void* ViewMemory::data(int64_t offset) const {
  if (bytes_.empty()) return nullptr;
  // In unsigned arithmetic: offsets are arbitrary, and the sum may wrap.
  const auto first =
      reinterpret_cast<uintptr_t>(bytes_.data()) - static_cast<uintptr_t>(lowest_) * element_size_;
  return reinterpret_cast<void*>(first - static_cast<uintptr_t>(offset) * element_size_);
}

bool quick(const ViewMemory& grad_output, const ViewMemory& weight) {
  return grad_output.elements() * weight.elements() <= int64_t{1} << 18;
}

}  // namespace retrograd::fuzz

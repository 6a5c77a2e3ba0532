// SPDX-License-Identifier: Apache-2.0
// ViewMemory: memory for exactly the elements a small view touches, so that a step beside them is seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrograd::fuzz {

// Operators run only when all their operands are this small: an input must not take seconds.
inline constexpr int64_t kMaxElements = 4096;

class ViewMemory {
 public:
  ViewMemory() = default;
  // Empty strides are dense.
  ViewMemory(const std::vector<int64_t>& shape, const std::vector<int64_t>& strides, size_t element_size);

  // False: too large, or no view at all; then there is no memory.
  bool small() const { return small_; }
  int64_t elements() const { return elements_; }
  size_t element_size() const { return element_size_; }
  // In elements, from the first one; 0 when not small.
  int64_t lowest() const { return lowest_; }
  int64_t highest() const { return highest_; }
  // Where `data` of a tensor with this offset has to point. An address outside the memory is not followed as
  // it is.
  void* data(int64_t offset = 0) const;

 private:
  bool small_ = false;
  int64_t elements_ = 0, lowest_ = 0, highest_ = 0;
  size_t element_size_ = 1;
  std::vector<unsigned char> bytes_;
};

// True when a convolution of these operands is a matter of milliseconds.
bool quick(const ViewMemory& grad_output, const ViewMemory& weight);

}  // namespace retrograd::fuzz

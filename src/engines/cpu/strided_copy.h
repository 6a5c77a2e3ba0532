// SPDX-License-Identifier: Apache-2.0
// Copies between two layouts of the same elements, whatever their strides. Axes are walked in the order in
// which they are given, the last one innermost; neighbours that nest the same way on both sides are joined.
// The two innermost are a row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace retrograd::engines::cpu {

// Strides in elements; from may be 0.
struct CopyAxis {
  int64_t size = 1, from = 0, to = 0;
};

// The longest stride of the target first.
std::vector<CopyAxis> as_they_lie(std::vector<CopyAxis> axes);

class StridedCopy {
 public:
  StridedCopy(std::vector<CopyAxis> axes, size_t element_bytes);
  int64_t rows() const { return rows_; }
  int64_t row_elements() const { return runs_ * run_; }
  // Elements that are moved at once.
  int64_t run() const { return run_; }
  // Rows [begin, end). Different rows may be copied at once.
  void copy(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const;
  // Zeros instead.
  void clear(std::byte* to, int64_t begin, int64_t end) const;

 private:
  template <class Row>
  void for_rows(int64_t begin, int64_t end, const Row& row) const;

  std::vector<CopyAxis> outer_;
  int64_t rows_ = 1;
  int64_t runs_ = 1, from_step_ = 0, to_step_ = 0;  // of a row
  int64_t run_ = 1, from_stride_ = 1, to_stride_ = 1;
  int64_t bytes_;  // of an element
};

}  // namespace retrograd::engines::cpu

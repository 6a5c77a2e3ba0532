// SPDX-License-Identifier: Apache-2.0
// Kernels that want aligned operands: addresses come when a step runs, so it holds a choice for each
// alignment.
#pragma once

#include <array>
#include <bit>
#include <string>

#include "kernels/cuda/alignment.h"

namespace retrograd::engines::cuda {

template <class Choice>
class ByAlignment {
 public:
  // choose(bytes), for 1, 2, 4, 8 and 16.
  template <class Choose>
  explicit ByAlignment(const Choose& choose) {
    for (size_t i = 0; i < choices_.size(); ++i) choices_[i] = choose(1 << i);
  }
  Choice at(int alignment) const {
    return choices_[static_cast<size_t>(std::countr_zero(static_cast<unsigned>(alignment)))];
  }
  Choice aligned() const { return choices_.back(); }
  const std::array<Choice, 5>& all() const { return choices_; }
  // "small; unaligned: rows": the latter for operands at multiples of an element.
  std::string describe(size_t element_bytes) const {
    const Choice other = at(static_cast<int>(element_bytes));
    std::string text = name_of(aligned());
    if (other != aligned()) text.append("; unaligned: ").append(name_of(other));
    return text;
  }

 private:
  std::array<Choice, 5> choices_;
};

}  // namespace retrograd::engines::cuda

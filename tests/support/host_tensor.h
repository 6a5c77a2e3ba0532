// SPDX-License-Identifier: Apache-2.0
// HostTensor: a view with memory behind it, read and written by index as double. Works for any strides.
#pragma once

#include <cstddef>
#include <random>
#include <span>
#include <vector>

#include "problem/tensor_view.h"

namespace retrograd::test {

inline constexpr std::byte kPoison{0xCD};  // what a result and the bytes around it hold before a run

class HostTensor {
 public:
  explicit HostTensor(const problem::TensorView& view);

  const problem::TensorView& view() const { return view_; }
  int64_t count() const { return count_; }
  void* data() { return storage_.data() + origin_; }
  const void* data() const { return storage_.data() + origin_; }

  // From the lowest to the highest byte of the view, the gaps between its elements included.
  std::span<const std::byte> storage() const { return storage_; }
  std::span<std::byte> storage() { return storage_; }
  size_t origin() const { return origin_; }  // of data() in it
  const std::byte* at(const Dims& index) const;

  double get(const Dims& index) const;
  void set(const Dims& index, double value);
  // Every index of the view, last axis fastest.
  template <class Visit>
  void for_each(Visit&& visit) const {
    walk([&](const Dims& index, size_t) { visit(index); });
  }
  // In the same order, where each element begins in storage().
  template <class Visit>
  void for_each_byte(Visit&& visit) const {
    walk([&](const Dims&, size_t byte) { visit(byte); });
  }
  // The elements in that order, as stored bits.
  std::vector<uint32_t> bits() const;

  // Integers in [-limit, limit]; broadcast elements are written several times, the last one stays.
  void fill_integers(std::mt19937_64& random, int limit);
  void fill_normal(std::mt19937_64& random, double scale);
  void poison();
  // True when every byte that belongs to no element still holds the poison.
  bool gaps_untouched() const;

 private:
  std::byte* at(const Dims& index);

  template <class Visit>
  void walk(Visit&& visit) const {
    if (count_ == 0) return;
    Dims index = Dims::filled(view_.shape.rank(), 0);
    const auto width = static_cast<int64_t>(size_of(view_.dtype));
    auto byte = static_cast<int64_t>(origin_);
    while (true) {
      visit(index, static_cast<size_t>(byte));
      int axis = index.rank() - 1;
      for (; axis >= 0; --axis) {
        byte += view_.strides[axis] * width;
        if (++index[axis] < view_.shape[axis]) break;
        byte -= view_.strides[axis] * view_.shape[axis] * width;
        index[axis] = 0;
      }
      if (axis < 0) return;
    }
  }

  problem::TensorView view_;
  int64_t count_ = 0;
  size_t origin_ = 0;
  std::vector<std::byte> storage_;
};

}  // namespace retrograd::test

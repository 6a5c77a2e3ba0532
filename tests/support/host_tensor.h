// SPDX-License-Identifier: Apache-2.0
// HostTensor: a view with memory behind it, read and written by index as double. Works for any strides.
#pragma once

#include <cstddef>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "problem/tensor_view.h"

namespace retrograd::test {

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
  void for_each(const std::function<void(const Dims&)>& visit) const;
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

  problem::TensorView view_;
  int64_t count_ = 0;
  size_t origin_ = 0;
  std::vector<std::byte> storage_;
};

}  // namespace retrograd::test

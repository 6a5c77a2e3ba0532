// SPDX-License-Identifier: Apache-2.0
// Dims: up to eight 64-bit sizes or strides, held in place, so that problems and plans never allocate for it.
#pragma once

#include <array>
#include <cassert>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace retrograd {

class Dims {
 public:
  static constexpr int kMaxRank = 8;

  Dims() = default;
  Dims(std::initializer_list<int64_t> values) : Dims(std::span(values.begin(), values.size())) {}
  explicit Dims(std::span<const int64_t> values) {
    assert(values.size() <= kMaxRank);
    for (int64_t v : values) push_back(v);
  }
  static Dims filled(int rank, int64_t value) {
    Dims d;
    for (int i = 0; i < rank; ++i) d.push_back(value);
    return d;
  }

  int rank() const { return rank_; }
  bool empty() const { return rank_ == 0; }
  int64_t& operator[](int i) { return values_[static_cast<size_t>(i)]; }
  int64_t operator[](int i) const { return values_[static_cast<size_t>(i)]; }
  const int64_t* begin() const { return values_.data(); }
  const int64_t* end() const { return values_.data() + rank_; }
  void push_back(int64_t value) {
    assert(rank_ < kMaxRank);
    values_[static_cast<size_t>(rank_++)] = value;
  }
  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a[i] != b[i]) return false;
    return true;
  }

 private:
  int rank_ = 0;
  std::array<int64_t, kMaxRank> values_{};
};

// "2x3x224x224"; "scalar" for rank 0. The text form of a problem and every message print sizes this way.
std::string to_string(const Dims& dims);
// A caller's list with `separator` in between: "1x2x3"; of a long one the beginning, and how long it is.
std::string joined(std::span<const int64_t> values, std::string_view separator);

}  // namespace retrograd

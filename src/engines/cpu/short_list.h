// SPDX-License-Identifier: Apache-2.0
// ShortList: a vector that needs no memory of its own for up to kFew elements. Planning a tiny pass would
// otherwise spend half its time on lists of three taps.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace retrograd::engines::cpu {

template <class T, size_t kFew>
class ShortList {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return size_ <= kFew ? few_.data() : many_.data(); }
  T* end() { return begin() + size_; }
  const T* begin() const { return size_ <= kFew ? few_.data() : many_.data(); }
  const T* end() const { return begin() + size_; }
  T& operator[](size_t i) { return begin()[i]; }
  const T& operator[](size_t i) const { return begin()[i]; }
  const T& front() const { return *begin(); }
  const T& back() const { return end()[-1]; }

  void push_back(const T& value) {
    if (size_ >= kFew) {
      if (size_ == kFew) many_.assign(few_.begin(), few_.end());
      many_.push_back(value);
    } else {
      few_[size_] = value;
    }
    ++size_;
  }
  // Forgets all elements from `end` on.
  void cut(const T* end) {
    const auto kept = static_cast<size_t>(end - begin());
    if (size_ > kFew && kept <= kFew) std::copy(begin(), begin() + kept, few_.begin());
    if (size_ > kFew) many_.resize(kept > kFew ? kept : 0);
    size_ = kept;
  }

 private:
  size_t size_ = 0;
  std::array<T, kFew> few_{};
  std::vector<T> many_;  // all of them where they are more
};

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// HostTensor's storage and its index walk.
#include "support/host_tensor.h"

#include <algorithm>
#include <cstring>

namespace retrograd::test {

HostTensor::HostTensor(const problem::TensorView& view)
    : view_(view), count_(problem::element_count(view.shape).value()) {
  const auto width = size_of(view.dtype);
  problem::OffsetRange range;
  if (count_ > 0) range = problem::offset_range(view).value();
  origin_ = static_cast<size_t>(-range.lowest) * width;
  storage_.assign(count_ > 0 ? static_cast<size_t>(range.highest - range.lowest + 1) * width : 1, kPoison);
}

std::byte* HostTensor::at(const Dims& index) {
  int64_t offset = 0;
  for (int i = 0; i < index.rank(); ++i) offset += index[i] * view_.strides[i];
  return storage_.data() + static_cast<int64_t>(origin_) +
         offset * static_cast<int64_t>(size_of(view_.dtype));
}

const std::byte* HostTensor::at(const Dims& index) const { return const_cast<HostTensor*>(this)->at(index); }

double HostTensor::get(const Dims& index) const { return load_as_f32(view_.dtype, at(index)); }

void HostTensor::set(const Dims& index, double value) {
  store_from_f32(view_.dtype, at(index), static_cast<float>(value));
}

std::vector<uint32_t> HostTensor::bits() const {
  std::vector<uint32_t> all;
  all.reserve(static_cast<size_t>(count_));
  for_each_byte([&](size_t byte) {
    uint32_t word = 0;
    std::memcpy(&word, storage_.data() + byte, size_of(view_.dtype));  // little-endian
    all.push_back(word);
  });
  return all;
}

void HostTensor::fill_integers(std::mt19937_64& random, int limit) {
  std::uniform_int_distribution<int> value(-limit, limit);
  for_each([&](const Dims& index) { set(index, value(random)); });
}

void HostTensor::fill_normal(std::mt19937_64& random, double scale) {
  std::normal_distribution<double> value(0.0, scale);
  for_each([&](const Dims& index) { set(index, value(random)); });
}

void HostTensor::poison() { storage_.assign(storage_.size(), kPoison); }

bool HostTensor::gaps_untouched() const {
  const auto width = size_of(view_.dtype);
  if (static_cast<size_t>(count_) * width >= storage_.size()) return true;  // no gaps
  std::vector<char> element(storage_.size(), 0);
  for_each_byte(
      [&](size_t first) { std::fill_n(element.begin() + static_cast<ptrdiff_t>(first), width, 1); });
  for (size_t i = 0; i < storage_.size(); ++i)
    if (element[i] == 0 && storage_[i] != kPoison) return false;
  return true;
}

}  // namespace retrograd::test

// SPDX-License-Identifier: Apache-2.0
// Looks at the first words of attribute lists, then reads them in the width they showed.
#include "api/infini/attribute_width.h"

#include <bit>
#include <cstring>

namespace retrograd::api::infini {
namespace {

static_assert(std::endian::native == std::endian::little, "the test for 64-bit numbers relies on it");

template <class T>
T element(const void* list, int index) {
  T value;
  std::memcpy(&value, static_cast<const char*>(list) + sizeof(T) * static_cast<size_t>(index), sizeof(T));
  return value;
}

// Low halves in even words, zeros in odd ones.
bool shows_64(const void* list, int count) {
  for (int i = 0; i < count; ++i)
    if ((element<uint32_t>(list, i) == 0) != (i % 2 == 1)) return false;
  return true;
}

}  // namespace

Width attribute_width(std::initializer_list<const void*> positive_lists, int count, Width otherwise) {
  if (count < 2) return otherwise;
  Width width = otherwise;
  for (const void* list : positive_lists) {
    if (list == nullptr) continue;
    if (!shows_64(list, count)) return Width::k32;
    width = Width::k64;
  }
  return width;
}

std::vector<int64_t> read_attribute(const void* list, int count, Width width, int64_t when_null) {
  std::vector<int64_t> values(static_cast<size_t>(count), when_null);
  if (list == nullptr) return values;
  for (int i = 0; i < count; ++i)
    values[static_cast<size_t>(i)] =
        width == Width::k64 ? element<int64_t>(list, i) : element<int32_t>(list, i);
  return values;
}

Status check_sizes(const std::vector<int64_t>& values, Width width, const char* argument) {
  for (size_t i = 0; width == Width::k64 && i < values.size(); ++i)
    if (values[i] < 0)
      return Status(Code::kInvalidArgument, "{}[{}] is {}, expected at most {}", argument, i,
                    static_cast<uint64_t>(values[i]), INT64_MAX);
  return Status::ok();
}

}  // namespace retrograd::api::infini

// SPDX-License-Identifier: Apache-2.0
// Decodes infiniop objects and checks the promises that hold for every create call.
#include "infini_arguments.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "infinirt.h"
#include "retrograd/retrograd.h"

namespace retrograd::fuzz {
namespace {

size_t element_size(int dtype) { return dtype == INFINI_DTYPE_F32 ? 4 : 2; }

void* not_an_object() {
  static int64_t words[8] = {};
  return words;
}

}  // namespace

AttributeArrays::AttributeArrays(ByteReader& reader, size_t arrays, size_t count)
    : values_(arrays), arrays_(arrays) {
  const uint8_t mode = reader.byte();
  const bool wide = (mode & 1) != 0;
  bool any_zero = false;
  for (size_t i = 0; i < arrays; ++i) {
    if ((mode >> (i + 1) & 1) != 0) continue;  // null
    values_[i] = reader.numbers(count);
    any_zero = any_zero || std::find_if(values_[i].begin(), values_[i].end(), [](int64_t v) {
                             return static_cast<int32_t>(v) == 0;
                           }) != values_[i].end();
  }
  for (size_t i = 0; i < arrays; ++i) {
    // The width is told apart by a zero in the second word: a 32-bit caller who passes zeros is taken for a
    // 64-bit one, by the documented rule, and one number alone may be read in either width. There the memory
    // is as wide.
    const size_t room = wide || any_zero || count == 1 ? 8 : 4;
    arrays_[i].resize(values_[i].size() * room);
    for (size_t k = 0; k < values_[i].size(); ++k) {
      std::memcpy(arrays_[i].data() + k * (wide ? 8 : 4), &values_[i][k], wide ? 8 : 4);
    }
  }
}

InfiniArguments::~InfiniArguments() {
  for (infiniopTensorDescriptor_t d : descriptors_) (void)infiniopDestroyTensorDescriptor(d);
  (void)infiniopDestroyHandle(handle_);
}

infiniopHandle_t InfiniArguments::handle() {
  static const bool quiet =
      setenv("RETROGRAD_VERBOSE", "none", 0) == 0 && setenv("RETROGRAD_NUM_THREADS", "1", 0) == 0;
  require(quiet && infiniopCreateHandle(&handle_) == INFINI_STATUS_SUCCESS);
  const uint8_t mode = reader_.byte();
  if (mode == kDead) (void)infiniopDestroyHandle(handle_);
  if (mode == kForeign || mode == kAddress) return static_cast<infiniopHandle_t>(not_an_object());
  return mode == kNull ? nullptr : handle_;
}

InfiniTensorArgument& InfiniArguments::tensor(const std::vector<int64_t>& fitting) {
  InfiniTensorArgument& t = *tensors_.emplace_back(std::make_unique<InfiniTensorArgument>());
  const uint8_t mode = reader_.byte();
  t.shape = (mode & kOwnShape) != 0 ? reader_.numbers(reader_.byte() % 10) : fitting;
  const int dtype = reader_.choice({INFINI_DTYPE_F32, INFINI_DTYPE_F16, INFINI_DTYPE_BF16});
  std::vector<int64_t> strides;
  if ((mode & kStrided) != 0) strides = reader_.numbers(t.shape.size());
  t.memory = ViewMemory(t.shape, strides, element_size(dtype));
  t.twin = t.memory;

  const std::vector<size_t> sizes(t.shape.begin(), t.shape.end());
  const std::vector<ptrdiff_t> steps(strides.begin(), strides.end());
  infiniopTensorDescriptor_t live = nullptr;
  const infiniStatus_t status = infiniopCreateTensorDescriptor(&live, sizes.size(), sizes.data(),
                                                               steps.empty() ? nullptr : steps.data(),
                                                               static_cast<infiniDtype_t>(dtype));
  require((status == INFINI_STATUS_SUCCESS) == (live != nullptr));
  descriptors_.push_back(live);
  t.live = mode >= kLive && live != nullptr;
  t.descriptor = live;
  if (mode == kDead) (void)infiniopDestroyTensorDescriptor(live);
  if (mode == kNull) t.descriptor = nullptr;
  if (mode == kForeign) t.descriptor = reinterpret_cast<infiniopTensorDescriptor_t>(handle_);
  if (mode == kAddress) t.descriptor = static_cast<infiniopTensorDescriptor_t>(not_an_object());
  return t;
}

bool InfiniArguments::small() const {
  return std::all_of(tensors_.begin(), tensors_.end(),
                     [](const auto& t) { return !t->live || t->memory.small(); });
}

bool created(infiniStatus_t status, const struct InfiniopDescriptor* descriptor) {
  if (status == INFINI_STATUS_SUCCESS) {
    require(descriptor != untouched() && descriptor != nullptr);
    return true;
  }
  require(status == INFINI_STATUS_BAD_PARAM || status == INFINI_STATUS_BAD_TENSOR_DTYPE ||
          status == INFINI_STATUS_BAD_TENSOR_SHAPE || status == INFINI_STATUS_BAD_TENSOR_STRIDES);
  require(descriptor == untouched());
  require(std::string(retrogradGetLastError()).starts_with(std::to_string(status)));
  return false;
}

}  // namespace retrograd::fuzz

// SPDX-License-Identifier: Apache-2.0
// The array types and aclScalar: copies of what the caller gave.
#include <fmt/format.h>

#include <cstring>

#include "aclnn/acl_meta.h"
#include "api/acl/guard.h"
#include "api/acl/objects.h"

using namespace retrograd;
using namespace retrograd::api::acl;

namespace {

// No operator takes more than a handful of entries. The limit turns a wild length into an error instead of a
// read far past the caller's array.
constexpr uint64_t kMaxLength = uint64_t{1} << 16;

Status check_source(const void* value, uint64_t size) {
  if (size > kMaxLength)
    return Status(Code::kInvalidArgument, "size is {}, expected at most {}", size, kMaxLength);
  return size == 0 ? Status::ok() : not_null(value, "value");
}

template <class Handle, class T>
Handle* create_array(const char* function, const T* value, uint64_t size) {
  return guard_create<Handle>(function, [&]() -> Result<Handle*> {
    RG_CHECK(check_source(value, size));
    return make_handle<Handle>(std::make_shared<Object<Handle>>(value, value + size));
  });
}

template <class Handle>
aclnnStatus array_size(const char* function, const Handle* array, const char* name, uint64_t* size) {
  return guard_operator(function, [&]() -> Status {
    RG_TRY(const auto found, find(array, name));
    RG_CHECK(not_null(size, "size"));
    *size = found->size();
    return Status::ok();
  });
}

}  // namespace

aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size) {
  return create_array<aclIntArray>(__func__, value, size);
}

aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size) {
  return create_array<aclFloatArray>(__func__, value, size);
}

aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size) {
  // As bytes: a caller's bool may hold something that is neither true nor false.
  return create_array<aclBoolArray>(__func__, reinterpret_cast<const unsigned char*>(value), size);
}

aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size) {
  return guard_create<aclTensorList>(__func__, [&]() -> Result<aclTensorList*> {
    RG_CHECK(check_source(value, size));
    for (uint64_t i = 0; i < size; ++i) {
      if (value[i] == nullptr) continue;
      RG_CHECK(find(value[i], fmt::format("value[{}]", i).c_str()).status());
    }
    return make_handle<aclTensorList>(std::make_shared<TensorList>(value, value + size));
  });
}

aclScalar* aclCreateScalar(void* value, aclDataType dataType) {
  return guard_create<aclScalar>(__func__, [&]() -> Result<aclScalar*> {
    RG_CHECK(not_null(value, "value"));
    const size_t bytes = aclDataTypeSize(dataType);
    if (bytes == 0)
      return Status(Code::kBadDtype, "dataType is {}, expected a type of whole bytes",
                    static_cast<int>(dataType));
    auto scalar = std::make_shared<Scalar>();
    scalar->dtype = dataType;
    std::memcpy(scalar->bytes.data(), value, bytes);
    return make_handle<aclScalar>(std::move(scalar));
  });
}

aclnnStatus aclDestroyScalar(const aclScalar* scalar) {
  return guard_operator(__func__, [&] { return destroy(scalar, "scalar"); });
}

aclnnStatus aclDestroyIntArray(const aclIntArray* array) {
  return guard_operator(__func__, [&] { return destroy(array, "array"); });
}

aclnnStatus aclDestroyFloatArray(const aclFloatArray* array) {
  return guard_operator(__func__, [&] { return destroy(array, "array"); });
}

aclnnStatus aclDestroyBoolArray(const aclBoolArray* array) {
  return guard_operator(__func__, [&] { return destroy(array, "array"); });
}

aclnnStatus aclDestroyTensorList(const aclTensorList* array) {
  return guard_operator(__func__, [&]() -> Status {
    if (array == nullptr) return Status::ok();
    const auto list = table<aclTensorList>().remove(array);
    if (list == nullptr) return dead_handle("array", array, "aclTensorList");
    // A tensor that its maker has destroyed already is no failure of the list.
    for (const aclTensor* tensor : *list) table<aclTensor>().remove(tensor);
    return Status::ok();
  });
}

aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size) {
  return array_size(__func__, array, "array", size);
}

aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size) {
  return array_size(__func__, array, "array", size);
}

aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size) {
  return array_size(__func__, array, "array", size);
}

aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size) {
  return array_size(__func__, tensorList, "tensorList", size);
}

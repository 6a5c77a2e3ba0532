// SPDX-License-Identifier: Apache-2.0
// aclTensor: made as the caller describes it, judged by the operator that takes it.

#include <algorithm>
#include <span>

#include "aclnn/acl_meta.h"
#include "api/acl/guard.h"
#include "api/acl/objects.h"
#include "problem/tensor_view.h"

using namespace retrograd;
using namespace retrograd::api::acl;

namespace {

Result<Dims> read_dims(const int64_t* values, uint64_t count, const char* name) {
  if (count > Dims::kMaxRank)
    return Status(Code::kInvalidArgument, "{}Num is {}, expected at most {}", name, count, Dims::kMaxRank);
  if (count > 0) RG_CHECK(not_null(values, name));
  return count == 0 ? Dims() : Dims(std::span(values, static_cast<size_t>(count)));
}

// A new int64_t[] that the caller deletes, as the interface has it.
Status hand_out(const Dims& dims, int64_t** values, uint64_t* count) {
  auto* copy = new int64_t[static_cast<size_t>(dims.rank())];
  std::copy(dims.begin(), dims.end(), copy);
  *values = copy;
  *count = static_cast<uint64_t>(dims.rank());
  return Status::ok();
}

Result<std::shared_ptr<Tensor>> find_for_getter(const aclTensor* tensor, const void* out,
                                                const char* out_name) {
  RG_TRY(auto found, find(tensor, "tensor"));
  RG_CHECK(not_null(out, out_name));
  return found;
}

}  // namespace

aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                           const int64_t* stride, int64_t offset, aclFormat format,
                           const int64_t* storageDims, uint64_t storageDimsNum, void* tensorData) {
  return guard_create<aclTensor>(__func__, [&]() -> Result<aclTensor*> {
    auto tensor = std::make_shared<Tensor>();
    RG_TRY(tensor->shape, read_dims(viewDims, viewDimsNum, "viewDims"));
    RG_TRY(const Dims storage, read_dims(storageDims, storageDimsNum, "storageDims"));
    if (!storage.empty() || tensor->shape.empty()) tensor->storage_shape = storage;
    tensor->strides = stride != nullptr ? Dims(std::span(stride, static_cast<size_t>(viewDimsNum)))
                                        : problem::dense_view(DType::kF32, tensor->shape).strides;
    tensor->offset = offset;
    tensor->dtype = dataType;
    tensor->format = format;
    tensor->data = tensorData;
    return make_handle<aclTensor>(std::move(tensor));
  });
}

aclnnStatus aclDestroyTensor(const aclTensor* tensor) {
  return guard_operator(__func__, [&] { return destroy(tensor, "tensor"); });
}

aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find_for_getter(tensor, viewDims, "viewDims"));
    RG_CHECK(not_null(viewDimsNum, "viewDimsNum"));
    return hand_out(found->shape, viewDims, viewDimsNum);
  });
}

aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims, uint64_t* storageDimsNum) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find_for_getter(tensor, storageDims, "storageDims"));
    RG_CHECK(not_null(storageDimsNum, "storageDimsNum"));
    return hand_out(found->storage_shape.value_or(Dims()), storageDims, storageDimsNum);
  });
}

aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue, uint64_t* stridesNum) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find_for_getter(tensor, stridesValue, "stridesValue"));
    RG_CHECK(not_null(stridesNum, "stridesNum"));
    return hand_out(found->strides, stridesValue, stridesNum);
  });
}

aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find_for_getter(tensor, offset, "offset"));
    *offset = found->offset;
    return Status::ok();
  });
}

aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find_for_getter(tensor, format, "format"));
    *format = found->format;
    return Status::ok();
  });
}

aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType) {
  return guard_operator(__func__, [&]() -> Status {
    RG_TRY(const auto found, find_for_getter(tensor, dataType, "dataType"));
    *dataType = found->dtype;
    return Status::ok();
  });
}

// SPDX-License-Identifier: Apache-2.0
// infiniop tensor descriptors. Only what cannot be stored is refused here; the operators judge the rest.
#include "infiniop/tensor_descriptor.h"

#include "api/infini/descriptors.h"
#include "api/infini/guard.h"

using namespace retrograd;
using namespace retrograd::api::infini;

namespace {

Result<Dims> shape_of(size_t ndim, const size_t* shape) {
  Dims dims;
  for (size_t i = 0; i < ndim; ++i) {
    if (shape[i] > static_cast<size_t>(INT64_MAX))
      return Status(Code::kBadShape, "shape[{}] is {}, expected at most {}", i, shape[i], INT64_MAX);
    dims.push_back(static_cast<int64_t>(shape[i]));
  }
  return dims;
}

}  // namespace

infiniStatus_t infiniopCreateTensorDescriptor(infiniopTensorDescriptor_t* desc_ptr, size_t ndim,
                                              const size_t* shape, const ptrdiff_t* strides,
                                              infiniDtype_t dtype) {
  return guard(__func__, [&]() -> Status {
    if (desc_ptr == nullptr) return Status(Code::kNullArgument, "desc_ptr is null");
    if (ndim > Dims::kMaxRank)
      return Status(Code::kBadShape, "ndim is {}, expected at most {}", ndim, Dims::kMaxRank);
    if (shape == nullptr && ndim > 0)
      return Status(Code::kNullArgument, "shape is null, expected {} sizes", ndim);
    auto descriptor = std::make_shared<Tensor>();
    descriptor->dtype = dtype;
    RG_TRY(descriptor->shape, shape_of(ndim, shape));
    descriptor->strides = problem::dense_view(DType::kF32, descriptor->shape).strides;
    for (size_t i = 0; strides != nullptr && i < ndim; ++i)
      descriptor->strides[static_cast<int>(i)] = strides[i];
    publish(std::move(descriptor), InfiniopTensorDescriptor{}, desc_ptr);
    return Status::ok();
  });
}

infiniStatus_t infiniopDestroyTensorDescriptor(infiniopTensorDescriptor_t desc) {
  return guard(__func__, [&]() -> Status { return destroy(desc, "desc"); });
}

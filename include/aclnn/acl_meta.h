/* SPDX-License-Identifier: Apache-2.0 */
/* What operators take: tensors, arrays, scalars, and the executor that phase one makes and phase two runs. */
#ifndef RETROGRAD_ACLNN_ACL_META_H
#define RETROGRAD_ACLNN_ACL_META_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct aclTensor aclTensor;
typedef struct aclScalar aclScalar;
typedef struct aclIntArray aclIntArray;
typedef struct aclFloatArray aclFloatArray;
typedef struct aclBoolArray aclBoolArray;
typedef struct aclTensorList aclTensorList;
typedef struct aclOpExecutor aclOpExecutor;
typedef int32_t aclnnStatus;

/* Strides and offset count elements; null strides are dense row-major; the first element is at
 * data + offset * size. storageDimsNum 0 leaves the storage unknown. Null when no tensor was made. */
RETROGRAD_API aclTensor* aclCreateTensor(const int64_t* viewDims, uint64_t viewDimsNum, aclDataType dataType,
                                         const int64_t* stride, int64_t offset, aclFormat format,
                                         const int64_t* storageDims, uint64_t storageDimsNum,
                                         void* tensorData);
/* The arrays and the scalar copy what they are given. */
RETROGRAD_API aclScalar* aclCreateScalar(void* value, aclDataType dataType);
RETROGRAD_API aclIntArray* aclCreateIntArray(const int64_t* value, uint64_t size);
RETROGRAD_API aclFloatArray* aclCreateFloatArray(const float* value, uint64_t size);
RETROGRAD_API aclBoolArray* aclCreateBoolArray(const bool* value, uint64_t size);
RETROGRAD_API aclTensorList* aclCreateTensorList(const aclTensor* const* value, uint64_t size);

/* Destroying null succeeds. */
RETROGRAD_API aclnnStatus aclDestroyTensor(const aclTensor* tensor);
RETROGRAD_API aclnnStatus aclDestroyScalar(const aclScalar* scalar);
RETROGRAD_API aclnnStatus aclDestroyIntArray(const aclIntArray* array);
RETROGRAD_API aclnnStatus aclDestroyFloatArray(const aclFloatArray* array);
RETROGRAD_API aclnnStatus aclDestroyBoolArray(const aclBoolArray* array);
/* Destroys the tensors of the list too. */
RETROGRAD_API aclnnStatus aclDestroyTensorList(const aclTensorList* array);

/* These three hand out a new int64_t[]; the caller deletes it. */
RETROGRAD_API aclnnStatus aclGetViewShape(const aclTensor* tensor, int64_t** viewDims, uint64_t* viewDimsNum);
RETROGRAD_API aclnnStatus aclGetStorageShape(const aclTensor* tensor, int64_t** storageDims,
                                             uint64_t* storageDimsNum);
RETROGRAD_API aclnnStatus aclGetViewStrides(const aclTensor* tensor, int64_t** stridesValue,
                                            uint64_t* stridesNum);
RETROGRAD_API aclnnStatus aclGetViewOffset(const aclTensor* tensor, int64_t* offset);
RETROGRAD_API aclnnStatus aclGetFormat(const aclTensor* tensor, aclFormat* format);
RETROGRAD_API aclnnStatus aclGetDataType(const aclTensor* tensor, aclDataType* dataType);
RETROGRAD_API aclnnStatus aclGetIntArraySize(const aclIntArray* array, uint64_t* size);
RETROGRAD_API aclnnStatus aclGetFloatArraySize(const aclFloatArray* array, uint64_t* size);
RETROGRAD_API aclnnStatus aclGetBoolArraySize(const aclBoolArray* array, uint64_t* size);
RETROGRAD_API aclnnStatus aclGetTensorListSize(const aclTensorList* tensorList, uint64_t* size);

/* A repeatable executor outlives phase two: it runs many times, until aclDestroyAclOpExecutor. */
RETROGRAD_API aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor* executor);
RETROGRAD_API aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor* executor);
/* A new data address for the index-th input, output, or tensor (inputs first, then outputs; those that the
 * output mask leaves out keep their number). The offset the tensor was made with still applies. */
RETROGRAD_API aclnnStatus aclSetInputTensorAddr(aclOpExecutor* executor, const size_t index,
                                                aclTensor* tensor, void* addr);
RETROGRAD_API aclnnStatus aclSetOutputTensorAddr(aclOpExecutor* executor, const size_t index,
                                                 aclTensor* tensor, void* addr);
RETROGRAD_API aclnnStatus aclSetTensorAddr(aclOpExecutor* executor, const size_t index, aclTensor* tensor,
                                           void* addr);

#ifdef __cplusplus
}
#endif

#endif

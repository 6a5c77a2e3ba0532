/* SPDX-License-Identifier: Apache-2.0 */
/* Base types of the acl interface: status codes, element types, formats, handles, half precision. */
#ifndef RETROGRAD_ACL_ACL_BASE_H
#define RETROGRAD_ACL_ACL_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "retrograd/export.h"

/* In C++ a constant has the type of the status it is compared with, so that `auto ret = ACL_SUCCESS;` can
 * take a status later; in C it is an enumerator, so that it can label a case. The enumerations are as wide as
 * an int, so that a value outside them can be looked at and refused. */
#ifdef __cplusplus
#define RETROGRAD_ACL_CONSTANT(type, name, value) static const type name = value
#define RETROGRAD_ACL_INT : int
#else
#define RETROGRAD_ACL_CONSTANT(type, name, value) enum { name = value }
#define RETROGRAD_ACL_INT
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef void* aclrtStream;
typedef void* aclrtEvent;
typedef void* aclrtContext;
typedef int aclError;
typedef uint16_t aclFloat16;

RETROGRAD_ACL_CONSTANT(aclError, ACL_SUCCESS, 0);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_NONE, 0);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_INVALID_PARAM, 100000);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_UNINITIALIZE, 100001);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_REPEAT_INITIALIZE, 100002);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_INVALID_FILE, 100003);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_PARSE_FILE, 100006);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_REPEAT_FINALIZE, 100037);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_PARAM_INVALID, 107000);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_INVALID_DEVICEID, 107001);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_CONTEXT_NULL, 107002);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_STREAM_CONTEXT, 107003);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_INVALID_HANDLE, 107017);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_SYS_PARAMS_OPT_NOT_SET, 107021);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_BAD_ALLOC, 200000);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_INVALID_DEVICE, 200002);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_FEATURE_NOT_SUPPORT, 207000);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_MEMORY_ALLOCATION, 207001);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_DEVICE_OOM, 207018);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_INTERNAL_ERROR, 500000);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_INTERNAL_ERROR, 507000);
RETROGRAD_ACL_CONSTANT(aclError, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, 507046);

typedef enum aclDataType RETROGRAD_ACL_INT {
  ACL_DT_UNDEFINED = -1,
  ACL_FLOAT = 0,
  ACL_FLOAT16 = 1,
  ACL_INT8 = 2,
  ACL_INT32 = 3,
  ACL_UINT8 = 4,
  ACL_INT16 = 6,
  ACL_UINT16 = 7,
  ACL_UINT32 = 8,
  ACL_INT64 = 9,
  ACL_UINT64 = 10,
  ACL_DOUBLE = 11,
  ACL_BOOL = 12,
  ACL_STRING = 13,
  ACL_COMPLEX64 = 16,
  ACL_COMPLEX128 = 17,
  ACL_BF16 = 27,
  ACL_INT4 = 29,
  ACL_UINT1 = 30,
  ACL_COMPLEX32 = 33,
  ACL_HIFLOAT8 = 34,
  ACL_FLOAT8_E5M2 = 35,
  ACL_FLOAT8_E4M3FN = 36,
} aclDataType;

typedef enum aclFormat RETROGRAD_ACL_INT {
  ACL_FORMAT_UNDEFINED = -1,
  ACL_FORMAT_NCHW = 0,
  ACL_FORMAT_NHWC = 1,
  ACL_FORMAT_ND = 2,
  ACL_FORMAT_NC1HWC0 = 3,
  ACL_FORMAT_FRACTAL_Z = 4,
  ACL_FORMAT_HWCN = 16,
  ACL_FORMAT_NDHWC = 27,
  ACL_FORMAT_FRACTAL_NZ = 29,
  ACL_FORMAT_NCDHW = 30,
  ACL_FORMAT_NDC1HWC0 = 32,
  ACL_FORMAT_NC = 35,
  ACL_FORMAT_NCL = 47,
} aclFormat;

typedef enum aclSysParamOpt RETROGRAD_ACL_INT {
  ACL_OPT_DETERMINISTIC = 0,
  ACL_OPT_ENABLE_DEBUG_KERNEL = 1,
  ACL_OPT_STRONG_CONSISTENCY = 2,
} aclSysParamOpt;

/* Bytes of one element; 0 for types without a whole number of them. */
RETROGRAD_API size_t aclDataTypeSize(aclDataType dataType);
RETROGRAD_API float aclFloat16ToFloat(aclFloat16 value);
/* To nearest even. */
RETROGRAD_API aclFloat16 aclFloatToFloat16(float value);

#ifdef __cplusplus
}
#endif

#endif

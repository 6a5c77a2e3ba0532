/* SPDX-License-Identifier: Apache-2.0 */
/* The acl interface from plain C11: every value of the specification, and one call of each phase. */
#include <stdio.h>

#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "aclnnop/level2/aclnn_avgpool2d_backward.h"
#include "aclnnop/level2/aclnn_avgpool3d_backward.h"
#include "opdev/op_errno.h"

#define SAME(name, value) _Static_assert((name) == (value), #name)

SAME(ACL_DT_UNDEFINED, -1);
SAME(ACL_FLOAT, 0);
SAME(ACL_FLOAT16, 1);
SAME(ACL_INT8, 2);
SAME(ACL_INT32, 3);
SAME(ACL_UINT8, 4);
SAME(ACL_INT16, 6);
SAME(ACL_UINT16, 7);
SAME(ACL_UINT32, 8);
SAME(ACL_INT64, 9);
SAME(ACL_UINT64, 10);
SAME(ACL_DOUBLE, 11);
SAME(ACL_BOOL, 12);
SAME(ACL_STRING, 13);
SAME(ACL_COMPLEX64, 16);
SAME(ACL_COMPLEX128, 17);
SAME(ACL_BF16, 27);
SAME(ACL_INT4, 29);
SAME(ACL_UINT1, 30);
SAME(ACL_COMPLEX32, 33);
SAME(ACL_HIFLOAT8, 34);
SAME(ACL_FLOAT8_E5M2, 35);
SAME(ACL_FLOAT8_E4M3FN, 36);

SAME(ACL_FORMAT_UNDEFINED, -1);
SAME(ACL_FORMAT_NCHW, 0);
SAME(ACL_FORMAT_NHWC, 1);
SAME(ACL_FORMAT_ND, 2);
SAME(ACL_FORMAT_NC1HWC0, 3);
SAME(ACL_FORMAT_FRACTAL_Z, 4);
SAME(ACL_FORMAT_HWCN, 16);
SAME(ACL_FORMAT_NDHWC, 27);
SAME(ACL_FORMAT_FRACTAL_NZ, 29);
SAME(ACL_FORMAT_NCDHW, 30);
SAME(ACL_FORMAT_NDC1HWC0, 32);
SAME(ACL_FORMAT_NC, 35);
SAME(ACL_FORMAT_NCL, 47);

SAME(ACL_MEMCPY_HOST_TO_HOST, 0);
SAME(ACL_MEMCPY_HOST_TO_DEVICE, 1);
SAME(ACL_MEMCPY_DEVICE_TO_HOST, 2);
SAME(ACL_MEMCPY_DEVICE_TO_DEVICE, 3);
SAME(ACL_MEMCPY_DEFAULT, 4);
SAME(ACL_MEM_MALLOC_HUGE_FIRST, 0);
SAME(ACL_MEM_MALLOC_HUGE_ONLY, 1);
SAME(ACL_MEM_MALLOC_NORMAL_ONLY, 2);
SAME(ACL_MEM_MALLOC_HUGE_FIRST_P2P, 3);
SAME(ACL_MEM_MALLOC_HUGE_ONLY_P2P, 4);
SAME(ACL_MEM_MALLOC_NORMAL_ONLY_P2P, 5);
SAME(ACL_DEVICE, 0);
SAME(ACL_HOST, 1);
SAME(ACL_EVENT_STATUS_COMPLETE, 0);
SAME(ACL_EVENT_STATUS_NOT_READY, 1);
SAME(ACL_EVENT_RECORDED_STATUS_NOT_READY, 0);
SAME(ACL_EVENT_RECORDED_STATUS_COMPLETE, 1);
SAME(ACL_STREAM_STATUS_COMPLETE, 0);
SAME(ACL_STREAM_STATUS_NOT_READY, 1);
SAME(ACL_OPT_DETERMINISTIC, 0);
SAME(ACL_OPT_ENABLE_DEBUG_KERNEL, 1);
SAME(ACL_OPT_STRONG_CONSISTENCY, 2);
SAME(ACL_DDR_MEM, 0);
SAME(ACL_HBM_MEM, 1);
SAME(ACL_HBM_MEM_P2P_NORMAL, 9);
SAME(ACL_EVENT_SYNC, 1);
SAME(ACL_EVENT_CAPTURE_STREAM_PROGRESS, 2);
SAME(ACL_EVENT_TIME_LINE, 8);
SAME(ACL_STREAM_FAST_LAUNCH, 1);
SAME(ACL_STREAM_FAST_SYNC, 2);

SAME(ACL_SUCCESS, 0);
SAME(ACL_ERROR_NONE, 0);
SAME(ACL_ERROR_INVALID_PARAM, 100000);
SAME(ACL_ERROR_UNINITIALIZE, 100001);
SAME(ACL_ERROR_REPEAT_INITIALIZE, 100002);
SAME(ACL_ERROR_INVALID_FILE, 100003);
SAME(ACL_ERROR_PARSE_FILE, 100006);
SAME(ACL_ERROR_REPEAT_FINALIZE, 100037);
SAME(ACL_ERROR_RT_PARAM_INVALID, 107000);
SAME(ACL_ERROR_RT_INVALID_DEVICEID, 107001);
SAME(ACL_ERROR_RT_CONTEXT_NULL, 107002);
SAME(ACL_ERROR_RT_STREAM_CONTEXT, 107003);
SAME(ACL_ERROR_RT_INVALID_HANDLE, 107017);
SAME(ACL_ERROR_RT_SYS_PARAMS_OPT_NOT_SET, 107021);
SAME(ACL_ERROR_BAD_ALLOC, 200000);
SAME(ACL_ERROR_INVALID_DEVICE, 200002);
SAME(ACL_ERROR_RT_FEATURE_NOT_SUPPORT, 207000);
SAME(ACL_ERROR_RT_MEMORY_ALLOCATION, 207001);
SAME(ACL_ERROR_RT_DEVICE_OOM, 207018);
SAME(ACL_ERROR_INTERNAL_ERROR, 500000);
SAME(ACL_ERROR_RT_INTERNAL_ERROR, 507000);
SAME(ACL_ERROR_RT_STREAM_SYNC_TIMEOUT, 507046);
SAME(ACLNN_SUCCESS, 0);
SAME(ACLNN_ERR_PARAM_NULLPTR, 161001);
SAME(ACLNN_ERR_PARAM_INVALID, 161002);
SAME(ACLNN_ERR_RUNTIME_ERROR, 361001);
SAME(ACLNN_ERR_INNER, 561000);
SAME(ACLNN_ERR_INNER_CREATE_EXECUTOR, 561101);
SAME(ACLNN_ERR_INNER_NULLPTR, 561103);

int main(void) {
  float self[10], input[10], weight[4], bias[2] = {0, 0}, grad_input[10], grad_weight[4], grad_bias[2];
  const int64_t tbc[] = {5, 1, 2}, kernel[] = {1, 2, 2}, channels[] = {2};
  for (int i = 0; i < 10; ++i) self[i] = input[i] = 1;
  for (int i = 0; i < 4; ++i) weight[i] = 1;
  if (aclInit(NULL) != ACL_SUCCESS || aclrtSetDevice(0) != ACL_SUCCESS) return 1;
#define TENSOR(dims, rank, data) \
  aclCreateTensor(dims, rank, ACL_FLOAT, NULL, 0, ACL_FORMAT_ND, dims, rank, data)
  aclTensor* tensors[] = {TENSOR(tbc, 3, self),          TENSOR(tbc, 3, input),
                          TENSOR(kernel, 3, weight),     TENSOR(channels, 1, bias),
                          TENSOR(tbc, 3, grad_input),    TENSOR(kernel, 3, grad_weight),
                          TENSOR(channels, 1, grad_bias)};
  uint64_t size = 0;
  aclOpExecutor* executor = NULL;
  aclnnStatus status =
      aclnnConvTbcBackwardGetWorkspaceSize(tensors[0], tensors[1], tensors[2], tensors[3], 0, 1, tensors[4],
                                           tensors[5], tensors[6], &size, &executor);
  void* workspace = NULL;
  if (size > 0 && aclrtMalloc(&workspace, size, ACL_MEM_MALLOC_HUGE_FIRST) != ACL_SUCCESS) return 1;
  if (status == ACLNN_SUCCESS) status = aclnnConvTbcBackward(workspace, size, executor, NULL);
  if (status != ACLNN_SUCCESS || aclrtSynchronizeStream(NULL) != ACL_SUCCESS) {
    const char* text = aclGetRecentErrMsg();
    printf("%d %s\n", status, text != NULL ? text : "");
    return 2;
  }
  if (workspace != NULL) aclrtFree(workspace);
  for (int i = 0; i < 7; ++i) aclDestroyTensor(tensors[i]);
  const int right = grad_input[9] == 2 && grad_weight[3] == 5 && grad_bias[1] == 5;
  return aclFinalize() == ACL_SUCCESS && right ? 0 : 3;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A user of the aclnn interface in plain C11. */
#include <stdlib.h>

#include "acl/acl.h"
#include "aclnn/opdev/op_errno.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "expected.h"

#define MUST(call)                                                                      \
  do {                                                                                  \
    const int status_ = (int)(call);                                                    \
    if (status_ != 0) {                                                                 \
      const char* why_ = aclGetRecentErrMsg();                                          \
      printf("%s: %d %s\n", #call, status_, why_ != NULL ? why_ : "without a message"); \
      exit(1);                                                                          \
    }                                                                                   \
  } while (0)

/* A tensor of ones on the device. */
static aclTensor* make_tensor(const int64_t* shape, uint64_t rank, aclFormat format, void** data) {
  float host[16];
  size_t count = 1, i;
  aclTensor* tensor;
  for (i = 0; i < rank; ++i) count *= (size_t)shape[i];
  for (i = 0; i < count; ++i) host[i] = 1.0f;
  MUST(aclrtMalloc(data, count * sizeof(float), ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclrtMemcpy(*data, count * sizeof(float), host, count * sizeof(float), ACL_MEMCPY_HOST_TO_DEVICE));
  tensor = aclCreateTensor(shape, rank, ACL_FLOAT, NULL, 0, format, shape, rank, *data);
  MUST(tensor == NULL);
  return tensor;
}

static int check(const char* name, const void* data, const float* expected, int count) {
  float host[16];
  MUST(aclrtMemcpy(host, sizeof host, data, (size_t)count * sizeof(float), ACL_MEMCPY_DEVICE_TO_HOST));
  return compare(name, host, expected, count);
}

int main(void) {
  enum { kGradOutput_, kInput_, kWeight_, kGradInput_, kGradWeight_, kGradBias_, kTensors };
  const int64_t small[] = {1, 1, 2, 2}, large[] = {1, 1, 3, 3}, channels[] = {1};
  const int64_t ones[] = {1, 1}, zeros[] = {0, 0};
  const bool all[] = {true, true, true};
  void *data[kTensors], *workspace = NULL;
  aclTensor* t[kTensors];
  aclIntArray *one, *zero, *bias;
  aclBoolArray* mask;
  aclOpExecutor* executor;
  aclrtStream stream;
  uint64_t bytes = 0;
  int i, wrong = 0;

  MUST(aclInit(NULL));
  MUST(aclrtSetDevice(0));
  MUST(aclrtCreateStream(&stream));
  t[kGradOutput_] = make_tensor(small, 4, ACL_FORMAT_NCHW, &data[kGradOutput_]);
  t[kInput_] = make_tensor(large, 4, ACL_FORMAT_NCHW, &data[kInput_]);
  t[kWeight_] = make_tensor(small, 4, ACL_FORMAT_NCHW, &data[kWeight_]);
  t[kGradInput_] = make_tensor(large, 4, ACL_FORMAT_NCHW, &data[kGradInput_]);
  t[kGradWeight_] = make_tensor(small, 4, ACL_FORMAT_NCHW, &data[kGradWeight_]);
  t[kGradBias_] = make_tensor(channels, 1, ACL_FORMAT_ND, &data[kGradBias_]);
  one = aclCreateIntArray(ones, 2);
  zero = aclCreateIntArray(zeros, 2);
  bias = aclCreateIntArray(channels, 1);
  mask = aclCreateBoolArray(all, 3);

  MUST(aclnnConvolutionBackwardGetWorkspaceSize(t[kGradOutput_], t[kInput_], t[kWeight_], bias, one, zero,
                                                one, false, zero, 1, mask, 0, t[kGradInput_], t[kGradWeight_],
                                                t[kGradBias_], &bytes, &executor));
  if (bytes > 0) MUST(aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST));
  MUST(aclnnConvolutionBackward(workspace, bytes, executor, stream));
  MUST(aclrtSynchronizeStream(stream));
  wrong |= check("grad_input", data[kGradInput_], kGradInput, 9);
  wrong |= check("grad_weight", data[kGradWeight_], kGradWeight, 4);
  wrong |= check("grad_bias", data[kGradBias_], kGradBias, 1);

  for (i = 0; i < kTensors; ++i) {
    MUST(aclDestroyTensor(t[i]));
    MUST(aclrtFree(data[i]));
  }
  MUST(aclDestroyIntArray(one));
  MUST(aclDestroyIntArray(zero));
  MUST(aclDestroyIntArray(bias));
  MUST(aclDestroyBoolArray(mask));
  if (workspace != NULL) MUST(aclrtFree(workspace));
  MUST(aclrtDestroyStream(stream));
  MUST(aclrtResetDevice(0));
  MUST(aclFinalize());
  if (wrong == 0) printf("right\n");
  return wrong;
}

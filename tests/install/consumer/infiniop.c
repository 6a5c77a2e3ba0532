/* SPDX-License-Identifier: Apache-2.0 */
/* A user of the infiniop interface in plain C11. */
#include "infiniop.h"

#include <stdlib.h>

#include "expected.h"
#include "infinirt.h"
#include "retrograd/retrograd.h"

#define MUST(call)                                                    \
  do {                                                                \
    const int status_ = (int)(call);                                  \
    if (status_ != 0) {                                               \
      printf("%s: %d %s\n", #call, status_, retrogradGetLastError()); \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

static float* make_ones(size_t count) {
  float host[16];
  void* device = NULL;
  size_t i;
  for (i = 0; i < count; ++i) host[i] = 1.0f;
  MUST(infinirtMalloc(&device, count * sizeof(float)));
  MUST(infinirtMemcpy(device, host, count * sizeof(float), INFINIRT_MEMCPY_H2D));
  return (float*)device;
}

static int check(const char* name, const float* device, const float* expected, int count) {
  float host[16];
  MUST(infinirtMemcpy(host, device, (size_t)count * sizeof(float), INFINIRT_MEMCPY_D2H));
  return compare(name, host, expected, count);
}

int main(void) {
  const size_t small[] = {1, 1, 2, 2}, large[] = {1, 1, 3, 3}, channels[] = {1};
  int pads[] = {0, 0}, strides[] = {1, 1}, dilations[] = {1, 1};
  infiniopHandle_t handle;
  infiniopTensorDescriptor_t grad_output_desc, input_desc, weight_desc, bias_desc;
  infiniopConvBackwardDescriptor_t conv;
  infinirtStream_t stream;
  float *grad_output, *input, *weight, *grad_input, *grad_weight, *grad_bias;
  void* workspace = NULL;
  size_t bytes = 0;
  int wrong = 0;

  MUST(infinirtInit());
  MUST(infinirtSetDevice(INFINI_DEVICE_CPU, 0));
  MUST(infinirtStreamCreate(&stream));
  MUST(infiniopCreateHandle(&handle));
  MUST(infiniopCreateTensorDescriptor(&grad_output_desc, 4, small, NULL, INFINI_DTYPE_F32));
  MUST(infiniopCreateTensorDescriptor(&input_desc, 4, large, NULL, INFINI_DTYPE_F32));
  MUST(infiniopCreateTensorDescriptor(&weight_desc, 4, small, NULL, INFINI_DTYPE_F32));
  MUST(infiniopCreateTensorDescriptor(&bias_desc, 1, channels, NULL, INFINI_DTYPE_F32));
  MUST(infiniopCreateConvBackwardDescriptor(handle, &conv, grad_output_desc, input_desc, weight_desc,
                                            bias_desc, pads, strides, dilations, 1));
  MUST(infiniopDestroyTensorDescriptor(grad_output_desc));
  MUST(infiniopDestroyTensorDescriptor(input_desc));
  MUST(infiniopDestroyTensorDescriptor(weight_desc));
  MUST(infiniopDestroyTensorDescriptor(bias_desc));

  grad_output = make_ones(4);
  input = make_ones(9);
  weight = make_ones(4);
  grad_input = make_ones(9);
  grad_weight = make_ones(4);
  grad_bias = make_ones(1);
  MUST(infiniopGetConvBackwardWorkspaceSize(conv, &bytes));
  if (bytes > 0) MUST(infinirtMalloc(&workspace, bytes));
  MUST(infiniopConvBackward(conv, workspace, bytes, grad_input, grad_weight, grad_bias, grad_output, input,
                            weight, stream));
  MUST(infinirtStreamSynchronize(stream));
  wrong |= check("grad_input", grad_input, kGradInput, 9);
  wrong |= check("grad_weight", grad_weight, kGradWeight, 4);
  wrong |= check("grad_bias", grad_bias, kGradBias, 1);

  MUST(infinirtFree(grad_output));
  MUST(infinirtFree(input));
  MUST(infinirtFree(weight));
  MUST(infinirtFree(grad_input));
  MUST(infinirtFree(grad_weight));
  MUST(infinirtFree(grad_bias));
  if (workspace != NULL) MUST(infinirtFree(workspace));
  MUST(infiniopDestroyConvBackwardDescriptor(conv));
  MUST(infiniopDestroyHandle(handle));
  MUST(infinirtStreamDestroy(stream));
  if (wrong == 0) printf("right\n");
  return wrong;
}

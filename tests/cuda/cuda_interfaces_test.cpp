// SPDX-License-Identifier: Apache-2.0
// A GPU through both C interfaces: which device is chosen, and that a stream is a cudaStream_t.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"
#include "infiniop.h"
#include "infiniop/ops/conv_backward.h"
#include "infinirt.h"

namespace {

class CudaInterfacesTest : public testing::Test {
 protected:
  void SetUp() override {
    int gpus = 0;
    ASSERT_EQ(infinirtGetDeviceCount(INFINI_DEVICE_NVIDIA, &gpus), INFINI_STATUS_SUCCESS);
    if (gpus == 0) GTEST_SKIP() << "this machine has no GPU that CUDA can use";
  }
};

template <class T>
T* to_gpu(const std::vector<T>& values) {
  void* block = nullptr;
  EXPECT_EQ(infinirtMalloc(&block, values.size() * sizeof(T)), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtMemcpy(block, values.data(), values.size() * sizeof(T), INFINIRT_MEMCPY_H2D),
            INFINI_STATUS_SUCCESS);
  return static_cast<T*>(block);
}
std::vector<float> from_gpu(const float* block, size_t count) {
  std::vector<float> values(count);
  EXPECT_EQ(infinirtMemcpy(values.data(), block, count * sizeof(float), INFINIRT_MEMCPY_D2H),
            INFINI_STATUS_SUCCESS);
  return values;
}

infiniopTensorDescriptor_t tensor(std::vector<size_t> shape) {
  infiniopTensorDescriptor_t descriptor = nullptr;
  EXPECT_EQ(
      infiniopCreateTensorDescriptor(&descriptor, shape.size(), shape.data(), nullptr, INFINI_DTYPE_F32),
      INFINI_STATUS_SUCCESS);
  return descriptor;
}

// All ones, 2x2x7x7 with a kernel of 1x1: gradients 2, 98 and 98.
TEST_F(CudaInterfacesTest, InfiniopRunsOnStreamsOfCuda) {
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_NVIDIA, 0), INFINI_STATUS_SUCCESS);
  infiniopHandle_t handle = nullptr;
  ASSERT_EQ(infiniopCreateHandle(&handle), INFINI_STATUS_SUCCESS);
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  ASSERT_EQ(
      infiniopCreateConvBackwardDescriptor(handle, &descriptor, tensor({2, 2, 7, 7}), tensor({2, 2, 7, 7}),
                                           tensor({2, 2, 1, 1}), tensor({2}), nullptr, nullptr, nullptr, 1),
      INFINI_STATUS_SUCCESS);
  size_t bytes = 0;
  ASSERT_EQ(infiniopGetConvBackwardWorkspaceSize(descriptor, &bytes), INFINI_STATUS_SUCCESS);
  void* workspace = nullptr;
  ASSERT_EQ(infinirtMalloc(&workspace, bytes + 1), INFINI_STATUS_SUCCESS);
  float* const y = to_gpu(std::vector<float>(196, 1));
  float* const x = to_gpu(std::vector<float>(196, 1));
  float* const w = to_gpu(std::vector<float>(4, 1));
  infinirtStream_t ours = nullptr;
  ASSERT_EQ(infinirtStreamCreate(&ours), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(cudaStreamSynchronize(static_cast<cudaStream_t>(ours)), cudaSuccess);
  cudaStream_t theirs = nullptr;
  ASSERT_EQ(cudaStreamCreate(&theirs), cudaSuccess);
  for (infinirtStream_t stream :
       {static_cast<infinirtStream_t>(nullptr), ours, static_cast<infinirtStream_t>(theirs)}) {
    float* const gx = to_gpu(std::vector<float>(196, -1));
    float* const gw = to_gpu(std::vector<float>(4, -1));
    float* const gb = to_gpu(std::vector<float>(2, -1));
    ASSERT_EQ(infiniopConvBackward(descriptor, workspace, bytes, gx, gw, gb, y, x, w, stream),
              INFINI_STATUS_SUCCESS);
    ASSERT_EQ(infinirtStreamSynchronize(stream), INFINI_STATUS_SUCCESS);
    EXPECT_EQ(from_gpu(gx, 196), std::vector<float>(196, 2));
    EXPECT_EQ(from_gpu(gw, 4), std::vector<float>(4, 98));
    EXPECT_EQ(from_gpu(gb, 2), std::vector<float>(2, 98));
    for (void* block : {gx, gw, gb}) EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  }
  EXPECT_EQ(infinirtStreamDestroy(ours), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(cudaStreamDestroy(theirs), cudaSuccess);
  for (void* block : {static_cast<void*>(x), static_cast<void*>(y), static_cast<void*>(w), workspace})
    EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
}

TEST_F(CudaInterfacesTest, InfinirtRefusesDevicesThatAreNotThere) {
  for (int device : {-1, 1000})
    EXPECT_NE(infinirtSetDevice(INFINI_DEVICE_NVIDIA, device), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_NVIDIA, 0), INFINI_STATUS_SUCCESS);
  void* block = nullptr;
  EXPECT_NE(infinirtMalloc(&block, size_t{1} << 45), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtMalloc(&block, 64), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infinirtFree(block), INFINI_STATUS_SUCCESS);
  ASSERT_EQ(infinirtSetDevice(INFINI_DEVICE_CPU, 0), INFINI_STATUS_SUCCESS);
}

TEST_F(CudaInterfacesTest, AclChoosesTheGpu) {
  ASSERT_EQ(aclInit(nullptr), ACL_SUCCESS);
  ASSERT_EQ(aclrtSetDevice(0), ACL_SUCCESS);
  EXPECT_EQ(std::string(aclrtGetSocName()).rfind("Retrograd-CUDA-sm", 0), 0u) << aclrtGetSocName();
  EXPECT_EQ(aclrtSetDevice(1000), ACL_ERROR_RT_INVALID_DEVICEID);
  void* block = nullptr;
  EXPECT_EQ(aclrtMalloc(&block, size_t{1} << 45, ACL_MEM_MALLOC_HUGE_FIRST), ACL_ERROR_RT_MEMORY_ALLOCATION);
  const char* text = aclGetRecentErrMsg();
  ASSERT_NE(text, nullptr);
  EXPECT_NE(std::string(text).find("cudaMalloc"), std::string::npos) << text;
  ASSERT_EQ(aclrtMalloc(&block, 64, ACL_MEM_MALLOC_HUGE_FIRST), ACL_SUCCESS);
  EXPECT_EQ(aclrtFree(block), ACL_SUCCESS);
  ASSERT_EQ(aclrtResetDevice(0), ACL_SUCCESS);
  ASSERT_EQ(aclFinalize(), ACL_SUCCESS);
}

}  // namespace

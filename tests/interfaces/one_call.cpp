// SPDX-License-Identifier: Apache-2.0
// One aclnnConvolutionBackward, and one that fails, for check_log.py to run under different environments.
#include <cstdio>
#include <vector>

#include "acl/acl.h"
#include "aclnnop/aclnn_convolution_backward.h"

int main() {
  aclrtStream stream = nullptr;
  if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0 || aclrtCreateStream(&stream) != 0) return 1;
  const int64_t shape[] = {8, 2, 64, 64}, weight_shape[] = {2, 2, 1, 1}, bias_shape[] = {2};
  std::vector<float> data(8 * 2 * 64 * 64, 1.0F), result(data.size()), weight(4, 1.0F), bias(2);
  const auto tensor = [](const int64_t* dims, uint64_t rank, void* address) {
    return aclCreateTensor(dims, rank, ACL_FLOAT, nullptr, 0, rank == 4 ? ACL_FORMAT_NCHW : ACL_FORMAT_ND,
                           dims, rank, address);
  };
  aclTensor* x = tensor(shape, 4, data.data());
  aclTensor* w = tensor(weight_shape, 4, weight.data());
  aclTensor* gi = tensor(shape, 4, result.data());
  aclTensor* gw = tensor(weight_shape, 4, weight.data());
  aclTensor* gb = tensor(bias_shape, 1, bias.data());
  const int64_t one[] = {1, 1}, zero[] = {0, 0};
  const bool all[] = {true, true, true};
  aclIntArray *ones = aclCreateIntArray(one, 2), *zeros = aclCreateIntArray(zero, 2);
  aclIntArray* sizes = aclCreateIntArray(one, 1);  // not the 2 that it should be: legal, with a warning
  aclBoolArray* mask = aclCreateBoolArray(all, 3);
  for (int groups : {1, 7}) {
    uint64_t bytes = 0;
    aclOpExecutor* executor = nullptr;
    const aclnnStatus status = aclnnConvolutionBackwardGetWorkspaceSize(
        x, x, w, sizes, ones, zeros, ones, false, zeros, groups, mask, 0, gi, gw, gb, &bytes, &executor);
    if ((status == 0) != (groups == 1)) return 1;
    if (status != 0) continue;
    void* workspace = nullptr;
    if (bytes > 0 && aclrtMalloc(&workspace, bytes, ACL_MEM_MALLOC_HUGE_FIRST) != 0) return 1;
    if (aclnnConvolutionBackward(workspace, bytes, executor, stream) != 0) return 1;
    if (aclrtSynchronizeStream(stream) != 0) return 1;
  }
  for (aclTensor* t : {x, w, gi, gw, gb}) aclDestroyTensor(t);
  for (aclIntArray* a : {ones, zeros, sizes}) aclDestroyIntArray(a);
  aclDestroyBoolArray(mask);
  return aclFinalize();
}

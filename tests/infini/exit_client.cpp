// SPDX-License-Identifier: Apache-2.0
// A client that cleans up in a static destructor, after main and after everything the library made in it:
// each destroy must still work, a second one must still be refused.
#include <cstdio>
#include <cstdlib>

#include "infiniop.h"
#include "infinirt.h"

namespace {

struct Client {
  infiniopHandle_t handle = nullptr;
  infiniopTensorDescriptor_t wide = nullptr, narrow = nullptr;
  infiniopAvgPoolBackwardDescriptor_t pool = nullptr;
  infinirtStream_t stream = nullptr;
  infinirtEvent_t event = nullptr;
  void* block = nullptr;

  static void must(infiniStatus_t status, infiniStatus_t expected, const char* what) {
    if (status == expected) return;
    std::printf("%s: %d, expected %d\n", what, static_cast<int>(status), static_cast<int>(expected));
    std::fflush(stdout);
    std::_Exit(1);
  }

  void use() {
    const size_t four[3] = {1, 1, 4}, two[3] = {1, 1, 2};
    size_t kernel = 2;
    must(infiniopCreateHandle(&handle), INFINI_STATUS_SUCCESS, "handle");
    must(infiniopCreateTensorDescriptor(&wide, 3, four, nullptr, INFINI_DTYPE_F32), INFINI_STATUS_SUCCESS,
         "wide");
    must(infiniopCreateTensorDescriptor(&narrow, 3, two, nullptr, INFINI_DTYPE_F32), INFINI_STATUS_SUCCESS,
         "narrow");
    must(infiniopCreateAvgPoolBackwardDescriptor(handle, &pool, wide, narrow, wide, &kernel, nullptr, nullptr,
                                                 false),
         INFINI_STATUS_SUCCESS, "pool");
    must(infinirtStreamCreate(&stream), INFINI_STATUS_SUCCESS, "stream");
    must(infinirtEventCreate(&event), INFINI_STATUS_SUCCESS, "event");
    must(infinirtMalloc(&block, 64), INFINI_STATUS_SUCCESS, "block");
    must(infinirtMemsetAsync(block, 0, 64, stream), INFINI_STATUS_SUCCESS, "memset");
    must(infinirtEventRecord(event, stream), INFINI_STATUS_SUCCESS, "record");
  }

  void destroy(infiniStatus_t expected) {
    must(infinirtFree(block), expected, "free");
    must(infinirtEventDestroy(event), expected, "event");
    must(infinirtStreamDestroy(stream), expected, "stream");
    must(infiniopDestroyAvgPoolBackwardDescriptor(pool), expected, "pool");
    must(infiniopDestroyTensorDescriptor(narrow), expected, "narrow");
    must(infiniopDestroyTensorDescriptor(wide), expected, "wide");
    must(infiniopDestroyHandle(handle), expected, "handle");
  }

  ~Client() {
    destroy(INFINI_STATUS_SUCCESS);
    destroy(INFINI_STATUS_BAD_PARAM);
    std::printf("all destroyed after main\n");
  }
};

Client client;  // made before the library is first used, so it goes last

}  // namespace

int main() { client.use(); }

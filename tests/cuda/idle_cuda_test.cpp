// SPDX-License-Identifier: Apache-2.0
// The runtime that runs nothing sees each rule broken, and what keeps it just so.
#include "idle_cuda.h"

#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

// What nvcc's code calls before main(): registers a kernel.
extern "C" void __cudaRegisterFunction(void** handle, const char* function, char* in_device, const char* name,
                                       int limit, uint3* thread, uint3* block, dim3* block_size,
                                       dim3* grid_size, int* warp_size);

namespace retrograd::test::idle_cuda_test {
namespace {

const char kKernel[] = "what stands for a kernel";
cudaStream_t stream() { return reinterpret_cast<cudaStream_t>(0x57); }
void* at(uintptr_t address) { return reinterpret_cast<void*>(address); }

class IdleCudaTest : public testing::Test {
 protected:
  void SetUp() override {
    __cudaRegisterFunction(nullptr, kKernel, nullptr, "_ZN9retrograd7kernels4cuda4testEv", -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    begin("rtx4090");
  }
  static void begin(const char* machine, bool declines = false) {
    idle_cuda::begin({named_machine(machine)->gpu, stream(), {{4096, 1000}}, declines});
  }
  static void launch(dim3 grid, dim3 block, size_t shared = 0) {
    cudaLaunchKernel(kKernel, grid, block, nullptr, shared, stream());
  }
  static void launch_clusters(dim3 grid, dim3 cluster) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
    cudaLaunchConfig_t config{};
    config.gridDim = grid, config.blockDim = 32, config.stream = stream();
    config.attrs = &attribute, config.numAttrs = 1;
    cudaLaunchKernelExC(&config, kKernel, nullptr);
  }
  // That there is one, which says this.
  static void expect_complaint(const std::string& text) {
    const auto all = idle_cuda::complaints();
    ASSERT_EQ(all.size(), 1U) << text << (all.empty() ? "" : "; first: " + all.front());
    EXPECT_NE(all.front().find(text), std::string::npos) << all.front();
  }
  static void expect_nothing() { EXPECT_EQ(idle_cuda::complaints(), std::vector<std::string>{}); }
};

TEST_F(IdleCudaTest, Grids) {
  launch({0x7FFFFFFF, 65535, 65535}, 1);
  expect_nothing();
  for (const dim3 grid : {dim3(0, 1, 1), dim3(1, 0, 1), dim3(1, 1, 0), dim3(0x80000000, 1, 1),
                          dim3(1, 65536, 1), dim3(1, 1, 65536)}) {
    begin("rtx4090");
    launch(grid, 1);
    expect_complaint("test(): a grid of ");
  }
}

TEST_F(IdleCudaTest, Blocks) {
  for (const dim3 block : {dim3(1024), dim3(1, 1024), dim3(16, 1, 64)}) launch(1, block);
  expect_nothing();
  for (const dim3 block : {dim3(0), dim3(1025), dim3(1, 1025), dim3(1, 1, 65), dim3(32, 33), dim3(1, 1, 0)}) {
    begin("rtx4090");
    launch(1, block);
    expect_complaint("blocks of ");
  }
}

// Kernels of the library; nvcc may have compressed what says so.
TEST_F(IdleCudaTest, LaunchBounds) {
  if (idle_cuda::bounds().empty()) GTEST_SKIP() << "no kernel's bounds are known";
  for (const auto& [kernel, threads] : idle_cuda::bounds()) {
    if (threads >= 1024) continue;
    begin("h200");
    cudaLaunchKernel(kernel, 1, static_cast<unsigned>(threads), nullptr, 0, stream());
    expect_nothing();
    cudaLaunchKernel(kernel, 1, static_cast<unsigned>(threads) + 1, nullptr, 0, stream());
    expect_complaint("its __launch_bounds__ are " + std::to_string(threads));
  }
}

TEST_F(IdleCudaTest, SharedMemory) {
  launch(1, 1, 49152);
  expect_nothing();
  launch(1, 1, 49153);
  expect_complaint("49153 bytes of shared memory, its attribute allows 49152");
  begin("rtx4090");
  cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 101376);
  launch(1, 1, 101376);
  expect_nothing();
  begin("rtx4090");  // attributes of before are forgotten
  launch(1, 1, 101376);
  expect_complaint("its attribute allows 49152");
  begin("rtx4090");
  cudaFuncSetAttribute(kKernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 106496);
  launch(1, 1, 106496);
  expect_complaint("106496 bytes of shared memory, the GPU has 101376");
}

TEST_F(IdleCudaTest, Clusters) {
  begin("h200");
  launch_clusters({6, 4, 3}, {2, 4, 1});
  expect_nothing();
  launch_clusters({6, 4, 3}, {4, 1, 1});
  expect_complaint("clusters of 4 x 1 x 1 do not divide a grid of 6 x 4 x 3");
  begin("h200");
  launch_clusters({32, 1, 1}, {16, 1, 1});
  expect_complaint("clusters of 16 blocks");
  begin("h200");
  launch_clusters({32, 1, 1}, {0, 1, 1});
  expect_complaint("clusters of 0 blocks");
  begin("a100");
  launch_clusters({6, 4, 3}, {2, 4, 1});
  expect_complaint("clusters, which compute capability 8.0 has not");
}

TEST_F(IdleCudaTest, KernelsAndStreams) {
  cudaLaunchKernel(kKernel + 1, 1, 1, nullptr, 0, stream());
  expect_complaint("a function that is no kernel: was not registered");
  begin("h200");
  cudaLaunchKernel(kKernel, 1, 1, nullptr, 0, nullptr);
  expect_complaint("test(): runs on another stream");
  begin("h200");
  cudaMemsetAsync(at(4096), 0, 10, nullptr);
  expect_complaint("cudaMemsetAsync: runs on another stream");
}

TEST_F(IdleCudaTest, FillsAndCopies) {
  cudaMemsetAsync(at(4096), 0, 1000, stream());
  cudaMemcpyAsync(at(4096), at(4196), 900, cudaMemcpyDeviceToDevice, stream());
  cudaMemsetAsync(at(1), 0, 0, stream());
  expect_nothing();
  cudaMemsetAsync(at(4095), 0, 10, stream());
  expect_complaint("cudaMemsetAsync: 10 bytes at 0xfff");
  begin("h200");
  cudaMemsetAsync(at(4097), 0, 1000, stream());
  expect_complaint("cudaMemsetAsync: 1000 bytes at 0x1001");
  begin("h200");
  cudaMemcpyAsync(at(5000), at(4096), 100, cudaMemcpyDeviceToDevice, stream());
  expect_complaint("cudaMemcpyAsync to: 100 bytes");
  begin("h200");
  cudaMemcpyAsync(at(4096), at(5000), 100, cudaMemcpyDeviceToDevice, stream());
  expect_complaint("cudaMemcpyAsync from: 100 bytes");
}

TEST_F(IdleCudaTest, Scratch) {
  void* data = nullptr;
  ASSERT_EQ(cudaMallocFromPoolAsync(&data, 100, nullptr, stream()), cudaSuccess);
  cudaMemsetAsync(data, 0, 100, stream());
  expect_complaint("scratch memory that nobody frees");
  cudaFreeAsync(data, stream());
  expect_nothing();
  cudaMemsetAsync(data, 0, 100, stream());
  expect_complaint("cudaMemsetAsync: 100 bytes");
  begin("h200");
  cudaFreeAsync(data, stream());
  expect_complaint("is no scratch memory");
  begin("h200", true);
  EXPECT_NE(cudaMallocFromPoolAsync(&data, 100, nullptr, stream()), cudaSuccess);
  expect_nothing();
}

// A legal map, which each test of a rule changes in one number.
struct Map {
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  uintptr_t data = 4096;
  cuuint32_t rank = 4;
  cuuint64_t sizes[5] = {64, 20, 20, 3, 1}, strides[4] = {128, 2560, 51200, 153600};
  cuuint32_t box[5] = {64, 8, 4, 1, 1}, steps[5] = {1, 1, 1, 1, 1};
  int lower[3] = {-1, -1, -1}, upper[3] = {-1, -1, -1};
  cuuint32_t channels = 64, places = 128;

  CUresult encode(bool im2col) const {
    void* function = nullptr;
    cudaGetDriverEntryPointByVersion(im2col ? "cuTensorMapEncodeIm2col" : "cuTensorMapEncodeTiled", &function,
                                     12000, cudaEnableDefault, nullptr);
    CUtensorMap map;
    constexpr auto kType = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
    constexpr auto kInterleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
    constexpr auto kPromotion = CU_TENSOR_MAP_L2_PROMOTION_L2_256B;
    constexpr auto kFill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    if (im2col)
      return reinterpret_cast<decltype(&cuTensorMapEncodeIm2col)>(function)(
          &map, kType, rank, at(data), sizes, strides, lower, upper, channels, places, steps, kInterleave,
          swizzle, kPromotion, kFill);
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function)(
        &map, kType, rank, at(data), sizes, strides, box, steps, kInterleave, swizzle, kPromotion, kFill);
  }
};

class MapRulesTest : public IdleCudaTest {
 protected:
  void SetUp() override { begin("h200"); }
  // What the change breaks, in one kind of map or in both.
  template <class Change>
  static void expect(const std::string& rule, Change&& change, bool tiled = true, bool im2col = true) {
    for (const bool kind : {false, true}) {
      if (!(kind ? im2col : tiled)) continue;
      begin("h200");
      Map map;
      change(map);
      map.encode(kind);
      expect_complaint(rule);
    }
  }
};

TEST_F(MapRulesTest, BothKinds) {
  EXPECT_EQ(Map().encode(false), CUDA_SUCCESS);
  EXPECT_EQ(Map().encode(true), CUDA_SUCCESS);
  expect_nothing();
  expect("data at 0x1008", [](Map& m) { m.data += 8; });
  expect("6 axes", [](Map& m) { m.rank = 6; });
  expect("size 0", [](Map& m) { m.sizes[2] = 0; });
  expect("size 4294967297", [](Map& m) { m.sizes[3] = 4294967297; });
  expect("stride of 2568 bytes", [](Map& m) { m.strides[1] = 2568; });
  expect("stride of 1099511627776 bytes", [](Map& m) { m.strides[2] = uint64_t{1} << 40; });
  expect("step 0", [](Map& m) { m.steps[1] = 0; });
  expect("step 9", [](Map& m) { m.steps[3] = 9; });
  expect("rows of 128 bytes, multiples of 16 up to 64",
         [](Map& m) { m.swizzle = CU_TENSOR_MAP_SWIZZLE_64B; });
  expect("rows of 120 bytes", [](Map& m) { m.box[0] = m.channels = 60; });
  begin("h200", true);
  EXPECT_NE(Map().encode(true), CUDA_SUCCESS);
  expect_nothing();
  begin("a100");
  Map().encode(false);
  expect_complaint("tensor maps, which compute capability 8.0 has not");
}

TEST_F(MapRulesTest, OneKind) {
  expect(
      "box of 257", [](Map& m) { m.box[1] = 257; }, true, false);
  expect(
      "box of 0", [](Map& m) { m.box[2] = 0; }, true, false);
  expect(
      "2 axes", [](Map& m) { m.rank = 2; }, false);
  expect(
      "corner -129 of 4 axes", [](Map& m) { m.lower[1] = -129; }, false);
  expect(
      "corner 128 of 4 axes", [](Map& m) { m.upper[0] = 128; }, false);
  expect(
      "corner 16 of 5 axes", [](Map& m) { m.rank = 5, m.lower[2] = 16; }, false);
  expect(
      "64 channels of 1025 places", [](Map& m) { m.places = 1025; }, false);
}

}  // namespace
}  // namespace retrograd::test::idle_cuda_test

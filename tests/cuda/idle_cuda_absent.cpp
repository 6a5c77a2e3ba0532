// SPDX-License-Identifier: Apache-2.0
// What src/runtime/cuda calls and nobody who only runs steps does: with these the linker leaves NVIDIA's
// runtime out. CUDA's headers would declare them with arguments, so they are not included.
#include <cstdlib>

#define RG_ABSENT(name)  \
  extern "C" int name(); \
  extern "C" int name() { std::abort(); }

RG_ABSENT(cudaDeviceSynchronize)
RG_ABSENT(cudaEventCreateWithFlags)
RG_ABSENT(cudaEventDestroy)
RG_ABSENT(cudaEventElapsedTime)
RG_ABSENT(cudaEventQuery)
RG_ABSENT(cudaEventRecord)
RG_ABSENT(cudaEventSynchronize)
RG_ABSENT(cudaFree)
RG_ABSENT(cudaFreeHost)
RG_ABSENT(cudaGetDeviceCount)
RG_ABSENT(cudaGetErrorName)
RG_ABSENT(cudaGetErrorString)
RG_ABSENT(cudaMalloc)
RG_ABSENT(cudaMallocHost)
RG_ABSENT(cudaMemcpy)
RG_ABSENT(cudaMemGetInfo)
RG_ABSENT(cudaPointerGetAttributes)
RG_ABSENT(cudaSetDevice)
RG_ABSENT(cudaStreamCreate)
RG_ABSENT(cudaStreamDestroy)
RG_ABSENT(cudaStreamQuery)
RG_ABSENT(cudaStreamSynchronize)
RG_ABSENT(cudaStreamWaitEvent)

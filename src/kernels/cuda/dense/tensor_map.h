// SPDX-License-Identifier: Apache-2.0
// Descriptions of tensors for Hopper's copy engine (hopper.cuh). Making one only computes, so it may be done
// for every launch; it goes to the kernel by value, as a __grid_constant__ parameter.
#pragma once

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "kernels/cuda/dense/places_map.h"

namespace retrograd::kernels::cuda {

// False: the driver declined.
bool make_map(const BoxMap& map, MapType type, const void* data, CUtensorMap* result);
bool make_map(const PlacesMap& map, MapType type, const void* data, CUtensorMap* result);

// Of the current GPU, for kernels whose blocks go from tile to tile.
inline int multiprocessors() {
  static const int count = [] {
    int device = 0, number = 0;
    cudaGetDevice(&device);
    cudaDeviceGetAttribute(&number, cudaDevAttrMultiProcessorCount, device);
    return number;
  }();
  return count;
}

}  // namespace retrograd::kernels::cuda

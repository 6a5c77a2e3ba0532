// SPDX-License-Identifier: Apache-2.0
// The kernels of the tiles that a gather product is cut into.
#pragma once

#include "kernels/cuda/dense/wgmma_gather_plan.h"
#include "kernels/cuda/sm90a/gather_launch.cuh"

namespace retrograd::kernels::cuda::wgather {

template <class T, bool kTurned>
bool launch_as(Tiles tiles, const GatherProduct& product, Stream stream) {
  switch (tiles) {
    case Tiles::k128x128:
      return launch<T, Cut<kTurned, 1, 128, 2, 6>>(product, stream);
    case Tiles::k192x128:
      return launch<T, Cut<kTurned, 1, 128, 3, 5>>(product, stream);
    case Tiles::k128x256:
      return launch<T, Cut<kTurned, 1, 256, 2, 4>>(product, stream);
    case Tiles::k128x160:
      return launch<T, Cut<kTurned, 1, 160, 2, 5>>(product, stream);
    case Tiles::k256x64:
      return launch<T, Cut<kTurned, 2, 64, 2, 5>>(product, stream);
    case Tiles::k256x64Shared:
      return launch<T, Cut<kTurned, 2, 64, 2, 3, 3>>(product, stream);
    case Tiles::k512x32Shared:
      return launch<T, Cut<kTurned, 4, 32, 2, 5, 3, 64>>(product, stream);
  }
  return false;
}

// Each in a file of its own.
bool launch_f16(Tiles tiles, const GatherProduct& product, Stream stream);
bool launch_bf16(Tiles tiles, const GatherProduct& product, Stream stream);

}  // namespace retrograd::kernels::cuda::wgather

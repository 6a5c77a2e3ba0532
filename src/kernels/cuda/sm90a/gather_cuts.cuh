// SPDX-License-Identifier: Apache-2.0
// The kernels of the tiles that a gather product is cut into.
#pragma once

#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/sm90a/gather_launch.cuh"

namespace retrograd::kernels::cuda::wgather {

template <class T, bool kTurned>
bool launch_as(const GatherProduct& product, const GatherLaunch& as, Stream stream) {
  switch (as.shape) {
    case GatherShape::k128x128:
      return launch<T, Cut<kTurned, 1, 128, 2, 6>>(product, as, stream);
    case GatherShape::k192x128:
      return launch<T, Cut<kTurned, 1, 128, 3, 5>>(product, as, stream);
    case GatherShape::k128x256:
      return launch<T, Cut<kTurned, 1, 256, 2, 4>>(product, as, stream);
    case GatherShape::k128x160:
      return launch<T, Cut<kTurned, 1, 160, 2, 5>>(product, as, stream);
    case GatherShape::k256x64:
      return launch<T, Cut<kTurned, 2, 64, 2, 5>>(product, as, stream);
    case GatherShape::k128x64Pairs:
      return launch<T, Cut<kTurned, 1, 64, 2, 4, 1, 128, 2>>(product, as, stream);
    case GatherShape::k128x128By16:
      return launch<T, Cut<kTurned, 1, 128, 2, 6, 1, 32, 1, 4>>(product, as, stream);
    case GatherShape::k128x64By16:
      return launch<T, Cut<kTurned, 1, 64, 2, 4, 1, 32, 2, 4>>(product, as, stream);
    case GatherShape::k128x128By32:
      return launch<T, Cut<kTurned, 1, 128, 2, 6, 1, 64, 1, 2>>(product, as, stream);
    case GatherShape::k128x256By32:
      return launch<T, Cut<kTurned, 1, 256, 2, 4, 1, 64, 1, 2>>(product, as, stream);
    case GatherShape::k256x64Shared:
      return launch<T, Cut<kTurned, 2, 64, 2, 3, 3>>(product, as, stream);
    case GatherShape::k512x32Shared:
      return launch<T, Cut<kTurned, 4, 32, 2, 5, 3, 64>>(product, as, stream);
  }
  return false;
}

// Each in a file of its own.
bool launch_f16(const GatherProduct& product, const GatherLaunch& as, Stream stream);
bool launch_bf16(const GatherProduct& product, const GatherLaunch& as, Stream stream);

}  // namespace retrograd::kernels::cuda::wgather

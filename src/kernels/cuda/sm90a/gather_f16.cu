// SPDX-License-Identifier: Apache-2.0
// Gather products of F16.
#include "kernels/cuda/sm90a/gather_cuts.cuh"

namespace retrograd::kernels::cuda::wgather {

bool launch_f16(Tiles tiles, const GatherProduct& product, Stream stream) {
  return product.forward ? launch_as<__half, false>(tiles, product, stream)
                         : launch_as<__half, true>(tiles, product, stream);
}

}  // namespace retrograd::kernels::cuda::wgather

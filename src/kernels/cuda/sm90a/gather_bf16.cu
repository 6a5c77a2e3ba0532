// SPDX-License-Identifier: Apache-2.0
// Gather products of BF16.
#include "kernels/cuda/sm90a/gather_cuts.cuh"

namespace retrograd::kernels::cuda::wgather {

bool launch_bf16(const GatherProduct& product, const GatherLaunch& as, Stream stream) {
  return product.forward ? launch_as<__nv_bfloat16, false>(product, as, stream)
                         : launch_as<__nv_bfloat16, true>(product, as, stream);
}

}  // namespace retrograd::kernels::cuda::wgather

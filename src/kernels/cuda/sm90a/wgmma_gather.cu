// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes tiles of pixels by channels. One thread asks the copy engine for 64 channels of a tap at a
// time, which also fills in zeros beyond the edge; two or three warpgroups multiply what has arrived. Blocks
// stay and take tile after tile, of all residues of the strides, so that copies run on while results are
// written. Few tiles with long sums are shared among the blocks of a cluster.
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/sm90a/gather_cuts.cuh"

namespace retrograd::kernels::cuda {

bool wgmma_gather(const GatherProduct& product, const GatherLaunch& launch, Stream stream) {
  return product.math == ProductMath::kBF16 ? wgather::launch_bf16(product, launch, stream)
                                            : wgather::launch_f16(product, launch, stream);
}

}  // namespace retrograd::kernels::cuda

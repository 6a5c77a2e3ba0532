// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes tiles of places by channels. One thread asks the copy engine for 64 channels of a tap at a
// time, which also fills in zeros beyond the edge; two or three warpgroups multiply what has arrived. Blocks
// stay and take tile after tile, so that copies run on while results are written.
#include "kernels/cuda/dense/wgmma_gather.h"
#include "kernels/cuda/sm90a/gather_cuts.cuh"

namespace retrograd::kernels::cuda {

bool wgmma_gather(const GatherProduct& product, Stream stream) {
  const wgather::Tiles tiles = wgather::choose(product).tiles;
  return product.math == ProductMath::kBF16 ? wgather::launch_bf16(tiles, product, stream)
                                            : wgather::launch_f16(tiles, product, stream);
}

}  // namespace retrograd::kernels::cuda

// SPDX-License-Identifier: Apache-2.0
// result[m, n] = Σ_{tap, c} source[place(m, tap), c] · weight[tap, n, c]
//
// A block makes a tile of places by channels. One thread asks the copy engine for 64 channels of a tap at a
// time, which also fills in zeros beyond the edge; two or three warpgroups multiply what has arrived. Blocks
// stay and take tile after tile, so that copies run on while results are written.
#include "kernels/cuda/sm90a/gather_launch.cuh"
#include "kernels/cuda/wgmma_gather.h"

namespace retrograd::kernels::cuda {
namespace {

using wgather::Cut;

template <class T>
bool launch_in(const GatherProduct& product, Stream stream) {
  return wgather::launch<T, Cut<false, false, 1, 128, 2, 1, 6>>(product, stream);
}

}  // namespace

bool wgmma_gather_takes(const GatherProduct& product) {
  wgather::Args p{};
  const int64_t channels = product.forward ? product.conv.x_channels : product.conv.y_channels;
  const PlacesMap map = wgather::describe(product, channels, p);
  const int64_t reach[3] = {(p.taps[2] - 1) * int64_t{std::abs(p.offset_step[2])},
                            (p.taps[1] - 1) * int64_t{std::abs(p.offset_step[1])},
                            (p.taps[0] - 1) * int64_t{std::abs(p.offset_step[0])}};
  return is_sayable(map, reach);
}

bool wgmma_gather(const GatherProduct& product, Stream stream) {
  return product.math == ProductMath::kBF16 ? launch_in<__nv_bfloat16>(product, stream)
                                            : launch_in<__half>(product, stream);
}

}  // namespace retrograd::kernels::cuda

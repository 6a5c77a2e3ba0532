// SPDX-License-Identifier: Apache-2.0
// The ways oneDNN can compute one request on plain tensors; the fastest one is the peer.
#pragma once

#include <string>
#include <vector>

#include "sequence.h"

namespace retrograd::peers {

struct Variant {
  std::string name;
  Sequence sequence;
};

// At least one, or Declined is thrown.
//   plain      oneDNN is given the user's formats and must take them
//   reorders   oneDNN chooses its formats; the reorders from and to the user's are part of the call
// With several gradients each may go its own way: plain+reorders is grad_input plain, grad_weight reordered.
std::vector<Variant> conv_variants(const problem::ConvRequest& request, const Tensors& tensors,
                                   const dnnl::engine& engine);
std::vector<Variant> conv_tbc_variants(const problem::ConvTbcRequest& request, const Tensors& tensors,
                                       const dnnl::engine& engine);
std::vector<Variant> pool_variants(const problem::AvgPoolRequest& request, const Tensors& tensors,
                                   const dnnl::engine& engine);

}  // namespace retrograd::peers

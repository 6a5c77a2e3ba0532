// SPDX-License-Identifier: Apache-2.0
// Any convolution as matrix products over rows of channels (NHWC, padded): which passes are taken, at what
// cost.
#include <fmt/format.h>

#include <algorithm>

#include "engines/cuda/dense/gather_way.h"
#include "engines/cuda/dense/product_limits.h"
#include "engines/cuda/dense/row_steps.h"
#include "engines/cuda/implementations.h"
#include "engines/pass_candidate.h"

namespace retrograd::engines::cuda {
namespace {

using kernels::cuda::RowType;
using problem::ConvPass;
using problem::ConvPassKind;

constexpr int64_t kFewestChannels = 16;  // of a group in TF32

template <bool kInTf32>
Support supports(const ConvPass& conv, const Machine& /*machine*/) {
  if (const Support support = takes_products(conv); !support.accepted()) return support;
  const bool in_f32 = row_type_of(conv) == RowType::kF32;
  if (kInTf32 && (!conv.hf32_allowed || !in_f32))
    return Support::no("f32 operands must not be rounded, or are not there");
  if (kInTf32 && conv.groups > 1 &&
      std::min(conv.x_channels_per_group(), conv.y_channels_per_group()) < kFewestChannels)
    return Support::no(fmt::format("groups of fewer than {} channels fill few tiles", kFewestChannels));
  if (!kInTf32 && in_f32)
    if (const Support support = takes_split_products(terms_of(conv)); !support.accepted()) return support;
  if (conv.kind == ConvPassKind::kGradInput && !has_gather_way(conv))
    return Support::no("more than 64 residues of the strides, with windows that overlap");
  return Support::yes();
}

template <bool kInTf32>
const Candidate& candidate(const char* name) {
  static const ConvCandidate instance(
      {name, "convolutions only", supports<kInTf32>,
       [](const ConvPass& pass, const Machine& machine) { return row_effort(pass, kInTf32, machine); },
       [](const ConvPass& pass, const Machine& machine) { return make_row_step(pass, kInTf32, machine); },
       nullptr, kInTf32});
  return instance;
}

}  // namespace

const Candidate& row_products() { return candidate<false>("cuda.row_products"); }
const Candidate& tf32_products() { return candidate<true>("cuda.tf32_products"); }

}  // namespace retrograd::engines::cuda

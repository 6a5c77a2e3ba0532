// SPDX-License-Identifier: Apache-2.0
// Average pooling: the formats its kernels are written for.
#include "api.h"
#include "ways.h"

namespace retrograd::peers {
namespace {

using dnnl::memory;
using problem::Operand;

memory::dims an_entry_an_axis(const std::vector<int64_t>& list, size_t axes) {
  return list.size() == 1 ? memory::dims(axes, list[0]) : list;
}

}  // namespace

// Pooling takes the formats it is given, so `reorders` means the blocked ones its kernels are written for.
std::vector<Variant> pool_variants(const problem::AvgPoolRequest& request, const Tensors& tensors,
                                   const dnnl::engine& engine) {
  if (request.ceil_mode || request.divisor_override != 0)
    throw Declined{"oneDNN has neither ceil mode nor a divisor"};
  const memory::desc grad_input = tensors[Operand::kGradInput].get_desc();
  const memory::desc grad_output = tensors[Operand::kGradOutput].get_desc();
  const size_t axes = sizes_of(grad_input).size() - 2;
  PoolingWindow window{an_entry_an_axis(request.kernel, axes), an_entry_an_axis(request.stride, axes),
                       an_entry_an_axis(request.padding, axes)};
  if (request.stride.empty()) window.stride = window.kernel;
  const auto algorithm = request.count_include_pad ? dnnl::algorithm::pooling_avg_include_padding
                                                   : dnnl::algorithm::pooling_avg_exclude_padding;
  const auto way = [&](const memory::desc& x, const memory::desc& y) -> Made {
    const auto made = pooling_desc(engine, algorithm, x, y, window);
    return {made, [x, y, primitive = dnnl::pooling_backward(made)](Sequence& sequence) {
              const memory from = sequence.read(Operand::kGradOutput, y);
              sequence.add(primitive, {{DNNL_ARG_DIFF_DST, from},
                                       {DNNL_ARG_DIFF_SRC, sequence.written(Operand::kGradInput, x)}});
            }};
  };
  using Tag = memory::format_tag;
  constexpr Tag kBlocks[][3] = {{Tag::nCw16c, Tag::nChw16c, Tag::nCdhw16c},
                                {Tag::nCw8c, Tag::nChw8c, Tag::nCdhw8c},
                                {Tag::nwc, Tag::nhwc, Tag::ndhwc}};
  constexpr const char* kNames[] = {"reorders-16c", "reorders-8c", "reorders-nhwc"};
  Attempts attempts;
  attempts.attempt("plain", [&] { return way(grad_input, grad_output); });
  for (size_t i = 0; i < std::size(kBlocks); ++i)
    attempts.attempt(kNames[i], [&] {
      const Tag tag = kBlocks[i][axes - 1];
      return way({sizes_of(grad_input), type_of(grad_input), tag},
                 {sizes_of(grad_output), type_of(grad_output), tag});
    });

  Variants variants(tensors, engine);
  for (const NamedWay& made : attempts.made("avgpool")) variants.add(made.name, made.append);
  return variants.made();
}

}  // namespace retrograd::peers

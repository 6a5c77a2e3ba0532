// SPDX-License-Identifier: Apache-2.0
// The create calls of retrograd/infiniop_ext.h.
#include "retrograd/infiniop_ext.h"

#include "api/infini/attribute_width.h"
#include "api/infini/guard.h"
#include "api/infini/requests.h"

using namespace retrograd;
using namespace retrograd::api::infini;

namespace {

// `pads` has the length its caller says; one that no rank allows is not read.
Result<std::vector<int64_t>> read_pads(const int64_t* pads, size_t pads_count, int spatial_rank) {
  const auto axes = static_cast<size_t>(spatial_rank);
  if (pads == nullptr && pads_count == 0) return std::vector<int64_t>(axes, 0);
  if (pads == nullptr) return Status(Code::kNullArgument, "pads is null, pads_count {}", pads_count);
  if (pads_count != axes && pads_count != 2 * axes && axes != 0)
    return Status(Code::kInvalidArgument,
                  "pads_count is {}, expected {} or {} (in front, behind; axis by axis)", pads_count, axes,
                  2 * axes);
  return axes == 0 ? std::vector<int64_t>() : std::vector<int64_t>(pads, pads + pads_count);
}

}  // namespace

infiniStatus_t retrogradInfiniopCreateConvBackwardDescriptor(
    infiniopHandle_t handle, infiniopConvBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_output_desc, infiniopTensorDescriptor_t input_desc,
    infiniopTensorDescriptor_t weight_desc, infiniopTensorDescriptor_t bias_desc, const int64_t* pads,
    size_t pads_count, const int64_t* strides, const int64_t* dilations, bool transposed,
    const int64_t* output_padding, int64_t groups) {
  return create_descriptor(__func__, handle, desc_ptr, [&]() -> Result<problem::Request> {
    RG_TRY(auto request, conv_request({grad_output_desc, input_desc, weight_desc, bias_desc}));
    const int count = spatial_rank({&request.grad_output, &request.input, &request.weight});
    RG_TRY(request.padding, read_pads(pads, pads_count, count));
    request.stride = read_attribute(strides, count, Width::k64, 1);
    request.dilation = read_attribute(dilations, count, Width::k64, 1);
    request.output_padding = read_attribute(output_padding, count, Width::k64, 0);
    request.rules.asymmetric_any_rank = true;
    request.transposed = transposed;
    request.groups = groups;
    request.names.groups = "groups";
    return problem::Request(std::move(request));
  });
}

infiniStatus_t retrogradInfiniopCreateAvgPoolBackwardDescriptor(
    infiniopHandle_t handle, infiniopAvgPoolBackwardDescriptor_t* desc_ptr,
    infiniopTensorDescriptor_t grad_input_desc, infiniopTensorDescriptor_t grad_output_desc,
    infiniopTensorDescriptor_t input_desc, const int64_t* kernel_size, const int64_t* strides,
    const int64_t* pads, bool ceil_mode, bool count_include_pad, int64_t divisor_override) {
  return create_descriptor(__func__, handle, desc_ptr, [&]() -> Result<problem::Request> {
    RG_TRY(auto request, pool_request({grad_input_desc, grad_output_desc, input_desc},
                                      {kernel_size, strides, pads}, Width::k64));
    request.ceil_mode = ceil_mode;
    request.count_include_pad = count_include_pad;
    request.divisor_override = divisor_override;
    return problem::Request(std::move(request));
  });
}

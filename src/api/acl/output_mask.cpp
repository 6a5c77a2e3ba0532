// SPDX-License-Identifier: Apache-2.0
// Reading outputMask and biasSizes.
#include "api/acl/output_mask.h"

#include <fmt/format.h>

#include "api/acl/objects.h"
#include "base/log.h"

namespace retrograd::api::acl {
namespace {

// What entry `entry` of a mask makes necessary.
Status not_null_by_mask(const void* pointer, const char* name, int entry) {
  if (pointer != nullptr) return Status::ok();
  return Status(Code::kNullArgument, "{} is null, expected an address as outputMask[{}] is true", name,
                entry);
}

}  // namespace

Result<OutputMask> read_output_mask(const aclBoolArray* mask, const MaskedArguments& arguments) {
  RG_TRY(const auto found, find(mask, "outputMask"));
  const BoolArray& wanted = *found;
  if (wanted.size() != 3)
    return Status(Code::kInvalidArgument,
                  "outputMask has length {}, expected 3: gradInput, gradWeight, gradBias", wanted.size());
  OutputMask result{wanted[0], wanted[1], wanted[2], {}};
  if (result.grad_input) RG_CHECK(not_null_by_mask(arguments.grad_input, "gradInput", 0));
  if (result.grad_weight) RG_CHECK(not_null_by_mask(arguments.grad_weight, "gradWeight", 1));
  if (result.grad_bias) {
    RG_CHECK(not_null_by_mask(arguments.grad_bias, "gradBias", 2));
    RG_CHECK(not_null_by_mask(arguments.bias_sizes, "biasSizes", 2));
    RG_TRY(result.bias_sizes, read_array(arguments.bias_sizes, "biasSizes"));
  }
  return result;
}

Status read_masked_outputs(PhaseOne& call, const OutputMask& mask, const MaskedArguments& arguments,
                           problem::ConvRequest& request) {
  using problem::Operand;
  RG_TRY(request.grad_input, call.masked_output(mask.grad_input, arguments.grad_input, "gradInput",
                                                Operand::kGradInput, kConvRules));
  RG_TRY(request.grad_weight, call.masked_output(mask.grad_weight, arguments.grad_weight, "gradWeight",
                                                 Operand::kGradWeight, kConvRules));
  RG_TRY(request.grad_bias,
         call.masked_output(mask.grad_bias, arguments.grad_bias, "gradBias", Operand::kGradBias,
                            request.transposed ? kTransposedBiasRules : kConvBiasRules));
  return Status::ok();
}

void judge_bias_sizes(const OutputMask& mask, int64_t channels, const char* operation) noexcept {
  const auto& sizes = mask.bias_sizes;
  if (!mask.grad_bias || (sizes.size() == 1 && sizes[0] == channels)) return;
  // The call has succeeded by now: a warning that finds no memory is lost.
  try {
    log::warn_once(fmt::format("{}: biasSizes is [{}], expected [{}], the output channels; it is not used",
                               operation, joined(sizes, ", "), channels));
  } catch (...) {
  }
}

}  // namespace retrograd::api::acl

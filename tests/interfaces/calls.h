// SPDX-License-Identifier: Apache-2.0
// A request of the text form as one whole call of a C interface, from creating its tensors to waiting for the
// stream.
#pragma once

#include <algorithm>
#include <string>

#include "problem/request.h"
#include "support/operands.h"

namespace retrograd::test {

struct CallResult {
  std::string failure;   // empty when all went well; otherwise what failed, with the library's message
  size_t workspace = 0;  // the size that the library asked for
};
CallResult call_aclnn(const problem::Request& request, Operands& operands);
CallResult call_infiniop(const problem::Request& request, Operands& operands);
CallResult call_retrograd(const problem::Request& request, Operands& operands);

// Whether the interface has this operator at all: aclnn has no 1-D pooling, infiniop no (T,B,C) and no mixed
// types, neither an output padding beyond the stride, ours no ceil sizes without the last-window correction.
bool aclnn_offers(const problem::Request& request);
bool infiniop_offers(const problem::Request& request);
bool retrograd_offers(const problem::Request& request);

inline bool pads_beyond_stride(const problem::ConvRequest& r) {
  const size_t each = r.stride.empty() ? 1 : r.output_padding.size() / r.stride.size();
  for (size_t i = 0; i < r.output_padding.size(); ++i)
    if (r.output_padding[i] >=
        (r.forward ? std::max(r.stride[i / each], r.dilation[i / each]) : r.stride[i / each]))
      return r.transposed;
  return false;
}

}  // namespace retrograd::test

// SPDX-License-Identifier: Apache-2.0
// Whether one result is what the oracle says: bit for bit, within the bound of its sum, or not finite exactly
// where the mathematics says so. Nothing of src/ judges here but the codecs of the element types.
#pragma once

#include <optional>
#include <string>

#include "engines/engine.h"
#include "support/generator/operand_data.h"
#include "support/oracle.h"
#include "support/tolerance.h"

namespace retrograd::test {

// What a result is held to; follows from the candidate, its device and the data.
struct Standard {
  bool exact_bits = false;  // sums of small integers
  bool winograd = false;    // near the largest result of the tensor; NaN and Inf spread over tiles
  Accumulation accumulation = Accumulation::kFloat;
  double product_error = 0;  // of what a product is made of, relative to it
  bool rounds_operands = false;
  bool on_gpu = false;
  double largest_operand = 0;  // where small products may be lost (a GPU), otherwise 0
  double smallest_normal = 0;  // of the 16-bit types of the operands; 0: there are none
  bool has_nonfinite = false;  // among the operands
  bool divides_last = false;   // the sum of a pooling window may overflow where its average does not
  bool may_overflow = false;   // operands are so large that finite sums may leave FP32's range
};
// What follows from the data, then from the candidate.
Standard standard_of(const DataSketch& data, const Operands& operands, runtime::DeviceKind device);
Standard standard_for(const engines::Candidate& candidate, runtime::DeviceKind device,
                      const Standard& of_data);

// Nothing where the result is right; otherwise the first element that is not and what it should be.
std::optional<std::string> find_error(const HostTensor& result, const Gradient& expected,
                                      const Standard& standard);

}  // namespace retrograd::test

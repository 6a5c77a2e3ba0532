// SPDX-License-Identifier: Apache-2.0
// The one-line text form of a request, printed by logs and errors, read by tests, benches and the
// command-line program:
//
// clang-format off
//   conv input=2x3x10x10 weight=6x3x3x3 grad_output=2x6x6x4 stride=1x2 padding=0x1 dilation=2x2 mask=iwb dtype=f32
//   conv_tbc input=5x1x2 weight=1x2x2 pad=0
//   avgpool input=2x5x77x89 kernel=5x3 stride=4x2 padding=2x1 ceil=1
// clang-format on
//
// A tensor is SHAPE[:dtype][@strides], strides in elements: input=2x3x10x10:f16@300x1x30x3. Whatever has its
// default value (dense strides, stride 1, padding 0, dtype of the line, sizes that follow from the others)
// need not be written.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "problem/request.h"

namespace retrograd::problem {

std::string to_text(const Request& request);
// The message of a failure ends in two lines: the text, and a caret under the offending token.
Result<Request> parse_request(std::string_view text);

}  // namespace retrograd::problem

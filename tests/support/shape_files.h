// SPDX-License-Identifier: Apache-2.0
// The problems of tests/shapes/*.txt: one text form a line, # comments.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "problem/request.h"

namespace retrograd::test {

struct NamedRequest {
  std::string place;  // "grouped.txt:4"
  problem::Request request;
};
// All problems of all files; a test failure for a line that does not parse, or when there is none.
std::vector<NamedRequest> read_shape_files();

// The problem with all tensors of one type; FLOAT results where an 8-bit type has no such gradient. Nothing
// where that is not legal.
std::optional<problem::Request> in_type(const problem::Request& request, DType dtype);

}  // namespace retrograd::test

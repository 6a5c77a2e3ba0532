// SPDX-License-Identifier: Apache-2.0
// Makes a request of a retrogradProblem_t.
#pragma once

#include <cstddef>

#include "problem/request.h"
#include "retrograd/retrograd.h"
#include "runtime/device.h"

namespace retrograd::api::own {

// Where the struct of the first header ended.
inline constexpr size_t kFirstProblemSize = offsetof(retrogradProblem_t, output);
// Whether some header's struct may have that size: the first one's, this one's, or a later one's.
bool is_problem_size(size_t size);

// The caller's struct as one of this version; fails when it cannot be.
Result<retrogradProblem_t> read_problem(const retrogradProblem_t* problem);

// Looks at what pointers lead to and at numbers that have no meaning; the rest is judged later.
Result<problem::Request> to_request(const retrogradProblem_t& problem);
// The device that all its tensors lie on.
Result<runtime::Device*> device_of(const retrogradProblem_t& problem);

retrogradDtype_t dtype_number(DType dtype);

// What the environment allows, for problems given as text.
void apply_settings(problem::Request& request);

}  // namespace retrograd::api::own

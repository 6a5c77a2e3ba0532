// SPDX-License-Identifier: Apache-2.0
// One call: borrow the arrays, find the plan, run it without the GIL.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "plans.h"

namespace retrograd::python {

// `arrays` and `dtypes` by operand, as many as there are: arrays or None, retrogradDtype_t or -1. `lists`:
// kernel, stride, padding, dilation, output_padding, each a tuple or one integer. `numbers`: groups,
// divisor_override, spatial_rank, transposed, ceil_mode, count_include_pad, winograd, math. `allocate(bytes)`
// gives the workspace of a run on a GPU.
void run(int operation, nb::tuple arrays, nb::tuple dtypes, nb::tuple lists, nb::tuple numbers,
         uint64_t stream, nb::object allocate);

// The same for plain NumPy arrays of float32 and float16; false, and nothing done, if one is something else.
bool run_plain(int operation, nb::tuple arrays, nb::tuple lists, nb::tuple numbers);

// The problem's line of text, for the same arguments.
std::string problem_text(int operation, nb::tuple arrays, nb::tuple dtypes, nb::tuple lists,
                         nb::tuple numbers);

// The arrays must be what the plan was made for.
void run_plan(const Plan& plan, nb::tuple arrays, nb::tuple dtypes, uint64_t stream, nb::object allocate);

}  // namespace retrograd::python

// SPDX-License-Identifier: Apache-2.0
// The runtime that oneDNN's loops run on: Debian's uses OpenMP, PyPI's TBB, with SYCL on the CPU around it.
#pragma once

namespace retrograd::peers {

// Before oneDNN is called for the first time.
void set_threads(int threads);

// "OpenMP", "TBB, SYCL": for the line that says what is measured.
const char* runtime_name();

// Makes the CPU a device of the SYCL runtime, where that is what oneDNN wants. Before its first call.
void prepare_runtime();

}  // namespace retrograd::peers

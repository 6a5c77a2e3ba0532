// SPDX-License-Identifier: Apache-2.0
// One runtime or the other, as the headers of the library say.
#include "threads.h"

#include <oneapi/dnnl/dnnl_config.h>

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP
#include <omp.h>
#else
#include <sched.h>
#endif

#include <cstdlib>

namespace retrograd::peers {

#if DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_OMP

void set_threads(int threads) { omp_set_num_threads(threads); }
const char* runtime_name() { return "OpenMP"; }

#elif DNNL_CPU_THREADING_RUNTIME == DNNL_RUNTIME_TBB

// oneDNN cuts its work into as many parts as TBB finds cores. TBB asks once which ones the process may use;
// a limit that is set in TBB itself would leave the parts as many as before.
void set_threads(int threads) {
  cpu_set_t all, some;
  if (sched_getaffinity(0, sizeof all, &all) != 0) return;
  CPU_ZERO(&some);
  for (int cpu = 0, taken = 0; cpu < CPU_SETSIZE && taken < threads; ++cpu) {
    if (!CPU_ISSET(cpu, &all)) continue;
    CPU_SET(cpu, &some);
    ++taken;
  }
  sched_setaffinity(0, sizeof some, &some);
}
const char* runtime_name() { return DNNL_CPU_RUNTIME == DNNL_RUNTIME_SYCL ? "TBB, SYCL" : "TBB"; }

#endif

void prepare_runtime() {
#ifdef RETROGRAD_OPENCL_DRIVER
  // Its packages on PyPI put the driver next to oneDNN, where nobody looks for it.
  setenv("OCL_ICD_FILENAMES", RETROGRAD_OPENCL_DRIVER, 0);
#endif
}

}  // namespace retrograd::peers

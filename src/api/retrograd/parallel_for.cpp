// SPDX-License-Identifier: Apache-2.0
// retrogradSetParallelFor.
#include "api/retrograd/guard.h"
#include "runtime/foreign_threads.h"

using namespace retrograd;

retrogradStatus_t retrogradSetParallelFor(retrogradParallelFor_t parallel_for,
                                          retrogradThreadCount_t thread_count, void* context) {
  return api::own::guard(__func__, [&]() -> Status {
    runtime::set_foreign_threads({parallel_for, thread_count, context});
    return Status::ok();
  });
}

// SPDX-License-Identifier: Apache-2.0
// NoCancellation: while it lives, pthread_cancel waits.
#pragma once

#include <pthread.h>

namespace retrograd {

// A cancelled thread unwinds out of whatever it waits in, and the C boundary lets nothing through: the
// process would end. The thread is cancelled at the first point after the call instead.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
  ~NoCancellation() { pthread_setcancelstate(before_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace retrograd

// SPDX-License-Identifier: Apache-2.0
// StreamGate: holds a stream's worker until it is opened, through the public interface alone, so that "not
// finished yet" can be seen without guessing how long anything takes.
#pragma once

#include <chrono>
#include <thread>

#include "acl/acl.h"

namespace retrograd::acl_test {

// The stream copies from a page without access rights; the fault waits in a signal handler until the gate
// opens. One gate exists at a time.
class StreamGate {
 public:
  // Returns when the worker stands before the gate.
  explicit StreamGate(aclrtStream stream);
  // Opens the gate and waits for the worker to pass it.
  ~StreamGate();
  void open();
  // From another thread: for calls that wait for the stream themselves.
  void open_after(std::chrono::milliseconds delay);

 private:
  std::thread opener_;
};

}  // namespace retrograd::acl_test

// SPDX-License-Identifier: Apache-2.0
// FaultGuard: code that may touch what it must not, run so that the program can say what it was doing.
#pragma once

#include <csetjmp>
#include <string_view>

namespace retrograd::test {

class FaultGuard {
 public:
  // Handles SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGALRM and SIGTERM, and what a sanitizer finds, from
  // here on. Once for a process.
  static void install();
  // What is blamed when the process has to end: a worker's fault cannot be taken back, nor can an abort, a
  // sanitizer's finding, or a step that ran longer than `seconds`.
  static void note(std::string_view doing, unsigned seconds);
  static void done();  // nothing is waited for any more

  // Runs `body` on this thread. 0, or the signal that ended it: then nothing that `body` had was destroyed.
  // Threads that `body` waits for must not depend on its frames.
  template <class Body>
  static int run(Body&& body) {
    const int signal = sigsetjmp(*arm(), 1);
    if (signal == 0) body();
    disarm();
    return signal;
  }

 private:
  static sigjmp_buf* arm();
  static void disarm();
};

}  // namespace retrograd::test

// SPDX-License-Identifier: Apache-2.0
// in_child(): runs a part of a test in a forked child. One that hangs is ended, and fails.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "sanitizers.h"

namespace retrograd::testing {

// Whether all other threads of this process wait for something. A thread that ended meanwhile counts as
// waiting.
inline bool others_sleep() {
  const std::string own = std::to_string(gettid());
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
    if (task.path().filename() == own) continue;
    std::string line;
    std::getline(std::ifstream(task.path() / "stat"), line);
    const size_t name_end = line.rfind(") ");
    if (name_end != std::string::npos && line[name_end + 2] != 'S') return false;
  }
  return true;
}

// The address sanitizer does not release its allocator's locks in a child: a thread that is just starting, or
// allocates, would leave one held there for ever.
inline void wait_for_quiet_threads() {
#ifdef RG_ADDRESS_SANITIZER
  for (int quiet = 0; quiet < 3; quiet = others_sleep() ? quiet + 1 : 0)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
#endif
}

// Expectations inside `body` count: the child says whether any failed.
template <class Body>
::testing::AssertionResult in_child(Body&& body) {
  constexpr unsigned kSeconds = 30;
  wait_for_quiet_threads();
  const pid_t child = fork();
  if (child < 0) return ::testing::AssertionFailure() << "no child";
  if (child == 0) {
    alarm(kSeconds);
    body();
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  if (waitpid(child, &status, 0) != child) return ::testing::AssertionFailure() << "no end of the child";
  if (WIFSIGNALED(status))
    return ::testing::AssertionFailure() << "the child ended by signal " << WTERMSIG(status)
                                         << (WTERMSIG(status) == SIGALRM ? ": it hung" : "");
  if (WEXITSTATUS(status) != 0) return ::testing::AssertionFailure() << "the child failed";
  return ::testing::AssertionSuccess();
}

}  // namespace retrograd::testing

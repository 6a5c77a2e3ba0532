// SPDX-License-Identifier: Apache-2.0
// in_child(): runs a part of a test in a forked child. One that hangs is ended, and fails.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

namespace retrograd::testing {

// Expectations inside `body` count: the child says whether any failed.
template <class Body>
::testing::AssertionResult in_child(Body&& body) {
  constexpr unsigned kSeconds = 30;
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

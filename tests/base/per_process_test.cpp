// SPDX-License-Identifier: Apache-2.0
// One object a process, and a fresh one in a forked child.
#include "base/per_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <mutex>

namespace retrograd {
namespace {

struct Counted {
  explicit Counted(int begin) : number(begin) {}
  std::mutex mutex;
  int number;
};

TEST(PerProcess, IsMadeOnceWithItsArguments) {
  static constinit PerProcess<Counted> counted;
  EXPECT_EQ(counted.get(5).number, 5);
  counted.get(5).number = 6;
  EXPECT_EQ(counted.get(7).number, 6);
  EXPECT_EQ(&counted.get(1), &counted.get(2));
}

// The parent's is locked when it forks: a child that touched it would wait for ever.
TEST(PerProcess, BeginsAnewInAForkedChild) {
  static constinit PerProcess<Counted> counted;
  Counted& parents = counted.get(1);
  parents.number = 2;
  EXPECT_EQ(fork_depth(), 0u);
  EXPECT_STREQ(fork_note(), "");
  std::lock_guard lock(parents.mutex);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    Counted& childs = counted.get(9);
    std::lock_guard free(childs.mutex);
    const bool fresh = &childs != &parents && childs.number == 9 && parents.number == 2;
    const bool told = fork_depth() == 1 && std::strstr(fork_note(), "fork()") != nullptr;
    _exit(fresh && told ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_EQ(&counted.get(3), &parents);
}

}  // namespace
}  // namespace retrograd

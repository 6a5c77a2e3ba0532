// SPDX-License-Identifier: Apache-2.0
// What happens when the system starts no more threads.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/log.h"
#include "host_fixture.h"
#include "runtime/context.h"
#include "runtime/thread_pool.h"

namespace retrograd::runtime {
namespace {

// While it lives every new thread asks for a stack no address space has room for, so none is started.
class NoThreads {
 public:
  NoThreads() {
    pthread_getattr_default_np(&before_);
    pthread_attr_t huge;
    pthread_attr_init(&huge);
    EXPECT_EQ(pthread_attr_setstacksize(&huge, size_t{1} << 50), 0);
    EXPECT_EQ(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
  }
  ~NoThreads() {
    pthread_setattr_default_np(&before_);
    pthread_attr_destroy(&before_);
  }

 private:
  pthread_attr_t before_;
};

TEST(ThreadFailure, AStreamWithoutAThreadIsRefused) {
  ThreadPool::instance();
  const NoThreads no_threads;
  const auto stream = cpu().create_stream();
  ASSERT_FALSE(stream.is_ok());
  EXPECT_EQ(stream.status().code(), Code::kOutOfMemory);
  EXPECT_EQ(stream.status().message().find("no thread for a stream of cpu:0: "), 0u)
      << stream.status().message();
}

TEST(ThreadFailure, AContextWithoutAStreamIsRefused) {
  ThreadPool::instance();
  const NoThreads no_threads;
  EXPECT_EQ(Context::create(cpu()).status().code(), Code::kOutOfMemory);
}

std::vector<std::string> warnings;

TEST(ThreadFailure, APoolWithoutThreadsWarnsAndRunsOnItsCaller) {
  warnings.clear();
  log::set_sink([](log::Topic, std::string_view line) { warnings.emplace_back(line); });
  int64_t visited = 0;
  // A text is warned about once in the life of the process; another number makes another text when repeated.
  static int wanted = 5;
  ++wanted;
  {
    const NoThreads no_threads;
    ThreadPool pool(wanted);
    EXPECT_EQ(pool.threads(), 1);
    pool.parallel_for(10, 3, [&](int64_t begin, int64_t end) { visited += end - begin; });
  }
  log::set_sink(nullptr);
  EXPECT_EQ(visited, 10);
  ASSERT_EQ(warnings.size(), 1u);
  const std::string expected = "only 1 of " + std::to_string(wanted) + " threads for parallel loops";
  EXPECT_NE(warnings[0].find(expected), std::string::npos) << warnings[0];
}

}  // namespace
}  // namespace retrograd::runtime

// SPDX-License-Identifier: Apache-2.0
// Does one thing in a fresh process, so that a test can look at it under an environment of its choice.
#include <malloc.h>

#include <cstdio>
#include <latch>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/last_error.h"
#include "base/log.h"
#include "base/settings.h"
#include "failing_memory.h"

namespace {

using namespace retrograd;

constexpr int kThreads = 8;

template <class Body>
void on_all_threads(Body body) {
  std::latch start(kThreads);
  std::vector<std::jthread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      body(t);
    });
  }
}

void print_settings() {
  const Settings& s = settings();
  std::printf("num_threads=%d device=%d hf32=%d\n", s.num_threads,
              s.device ? static_cast<int>(*s.device) : -1, s.hf32_mantissa_bits);
}

void write_all_topics() {
  log::write(log::Topic::kWarning, "one");
  log::write(log::Topic::kError, "two");
  log::write(log::Topic::kDispatch, "three");
  log::write(log::Topic::kCall, "four");
}

// The first use of the settings is here, on all threads at once.
void write_from_threads() {
  on_all_threads([](int t) {
    for (int i = 0; i < 300; ++i) log::write(log::Topic::kCall, std::string(200, static_cast<char>('a' + t)));
  });
}

void warn_from_threads() {
  on_all_threads([](int) { log::warn_once("the same"); });
}

void warn_without_end() {
  for (int i = 0; i < 1500; ++i) log::warn_once("number " + std::to_string(i));
}

// The first question finds no memory, the second does.
void settings_without_memory() {
  bool refused = false;
  {
    const test::MemoryIsOut now;
    try {
      static_cast<void>(settings());
    } catch (const std::bad_alloc&) {
      refused = true;
    }
    log::write(log::Topic::kWarning, "one");
  }
  std::printf("refused=%d threads=%d\n", refused ? 1 : 0, settings().num_threads);
}

// Prints the bytes that a thousand warnings of a megabyte each have left behind.
void warn_at_length() {
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 1100; ++i) log::warn_once("number " + std::to_string(i) + std::string(1 << 20, 'x'));
  std::printf("kept=%zu\n", mallinfo2().uordblks - before);
}

// Destroyed after the thread_locals of the main thread.
struct FailsAtExit {
  bool armed = false;
  ~FailsAtExit() {
    if (!armed) return;
    last_error::set("a text too long for the inside of a string object, written at exit");
    last_error::set(std::string("another text too long for the inside of a string object, at exit"));
    log::warn_once("still heard");
    std::printf("take=%s peek=\"%s\"\n", last_error::take() == nullptr ? "null" : "text", last_error::peek());
  }
} fails_at_exit;

void fail_at_exit() {
  last_error::set("first text, long enough to live on the heap");
  fails_at_exit.armed = true;
}

const struct {
  std::string_view name;
  void (*run)();
} kModes[] = {
    {"settings", print_settings},
    {"settings_without_memory", settings_without_memory},
    {"topics", write_all_topics},
    {"write_from_threads", write_from_threads},
    {"warn_from_threads", warn_from_threads},
    {"warn_without_end", warn_without_end},
    {"warn_at_length", warn_at_length},
    {"fail_at_exit", fail_at_exit},
};

}  // namespace

int main(int argc, char** argv) {
  for (const auto& mode : kModes) {
    if (argc != 2 || mode.name != argv[1]) continue;
    mode.run();
    return 0;
  }
  return 2;
}

// SPDX-License-Identifier: Apache-2.0
// api_storm SECONDS [SEED] [THREADS]: many threads call both interfaces at random, with live, stale, null,
// foreign and made-up handles, while others initialise, finalise and reset devices, and small problems in
// between must give exact results. Ends with 0 unless a call crashes, hangs, computes something wrong,
// answers an undocumented status or fails without a message.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "acl/acl.h"
#include "storm.h"

// All operands of random calls are the same memory, so their values are raced for, and only those.
extern "C" const char* __tsan_default_suppressions();
extern "C" const char* __tsan_default_suppressions() {
  return "race:retrograd::runtime::copy_bytes\nrace:retrograd::runtime::fill_bytes\nrace:retrograd::engines::"
         "\n";
}

namespace retrograd::soak {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kThreads = 64;
// A thread that has made no call for so long hangs. Generous: cores are shared and sanitizers slow.
constexpr std::chrono::seconds kHangs{120};

void live(Monkey& monkey, bool leads) {
  while (!monkey.storm.over()) {
    const int64_t choice = monkey.between(1, 100);
    if (leads || choice <= 6)
      lifecycle_monkey(monkey, leads);
    else if (choice <= 45)
      acl_monkey(monkey);
    else if (choice <= 80)
      infini_monkey(monkey);
    else if (choice <= 92)
      checked_acl_problem(monkey);
    else
      checked_infini_problem(monkey);
    // The leaders would leave no time between two finalizes for anybody to get work done.
    for (int64_t i = leads ? monkey.between(0, 2000) : 0; i > 0; --i) std::this_thread::yield();
  }
}

// Until the time is over, and then until everybody has come to an end: false when one does not.
bool watch(Storm& storm, const std::vector<std::unique_ptr<Monkey>>& monkeys, std::atomic<size_t>& ended,
           Clock::time_point end) {
  std::vector<uint64_t> calls(monkeys.size());
  std::vector<Clock::time_point> seen(monkeys.size(), Clock::now());
  while (ended < monkeys.size()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto now = Clock::now();
    if (now >= end) storm.end();
    for (size_t i = 0; i < monkeys.size(); ++i) {
      if (const uint64_t made = monkeys[i]->calls; made != calls[i] || *monkeys[i]->now.load() == '\0') {
        calls[i] = made;
        seen[i] = now;
      } else if (now - seen[i] > kHangs) {
        storm.fail(std::string("hangs: ") + monkeys[i]->now.load());
        return false;
      }
    }
  }
  return true;
}

void print(const std::vector<std::unique_ptr<Monkey>>& monkeys) {
  std::map<std::string, std::map<int, uint64_t>> tally;
  std::map<int, uint64_t> by_status;
  uint64_t calls = 0, checked = 0;
  for (const auto& monkey : monkeys) {
    checked += monkey->checked;
    for (const auto& [name, statuses] : monkey->tally())
      for (const auto& [status, count] : statuses) {
        tally[name][status] += count;
        by_status[status] += count;
        calls += count;
      }
  }
  for (const auto& [name, statuses] : tally) {
    std::printf("%-50s", name.c_str());
    for (const auto& [status, count] : statuses)
      std::printf(" %d: %llu ", status, static_cast<unsigned long long>(count));
    std::printf("\n");
  }
  std::printf("by status (-1: null from a create call):");
  for (const auto& [status, count] : by_status)
    std::printf(" %d: %llu ", status, static_cast<unsigned long long>(count));
  std::printf("\n%llu calls of %zu functions, %llu problems with exact results\n",
              static_cast<unsigned long long>(calls), tally.size(), static_cast<unsigned long long>(checked));
}

int storm(double seconds, uint64_t seed, size_t threads) {
  // Never destroyed: streams may still be working on its operands.
  auto& storm = *new Storm;
  std::vector<std::unique_ptr<Monkey>> monkeys;
  for (size_t i = 0; i < threads; ++i) monkeys.push_back(std::make_unique<Monkey>(storm, seed + i));
  const auto end =
      Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  std::atomic<size_t> ended{0};
  std::vector<std::thread> running;
  for (size_t i = 0; i < threads; ++i)
    running.emplace_back([&, i] {
      live(*monkeys[i], i % 16 == 0);
      ++ended;
    });
  if (!watch(storm, monkeys, ended, end)) std::abort();
  for (std::thread& thread : running) thread.join();
  print(monkeys);
  const aclError last = aclFinalize();
  if (last != ACL_SUCCESS && last != ACL_ERROR_REPEAT_FINALIZE && last != ACL_ERROR_UNINITIALIZE)
    storm.fail("the last aclFinalize answered " + std::to_string(last));
  return storm.failed() ? 1 : 0;
}

}  // namespace
}  // namespace retrograd::soak

int main(int count, char** arguments) {
  if (count < 2 || count > 4) {
    std::printf("usage: %s SECONDS [SEED] [THREADS]\n", arguments[0]);
    return 2;
  }
  const double seconds = std::atof(arguments[1]);
  const uint64_t seed = count > 2 ? std::strtoull(arguments[2], nullptr, 0) : std::random_device()();
  const int threads = count > 3 ? std::atoi(arguments[3]) : retrograd::soak::kThreads;
  std::printf("api_storm %g %llu %d\n", seconds, static_cast<unsigned long long>(seed), threads);
  std::fflush(stdout);
  setenv("RETROGRAD_VERBOSE", "none", 0);  // warnings are the same few, again and again
  // Of a GPU, any address may be a caller's own stream: made-up handles are for the CPU.
  setenv("RETROGRAD_DEVICE", "cpu", 1);
  return retrograd::soak::storm(seconds, seed, static_cast<size_t>(std::max(threads, 1)));
}

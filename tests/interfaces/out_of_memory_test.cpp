// SPDX-License-Identifier: Apache-2.0
// Every public call with a request for memory, or for a thread, refused: the n-th, for every n that is not
// made for the same callers as one before. The call must answer with its interface's code for that and a
// message, leave nothing behind, and succeed when repeated.
//
// Each case is a process of its own, forked before anything was called: what a process does once, at first
// use, is refused too. The parent never calls the library.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "acl/acl.h"
#include "exported_calls.h"
#include "failing_allocations.h"
#include "retrograd/retrograd.h"

namespace retrograd::test {
namespace {

using retrograd::testing::FailingAllocations;
using retrograd::testing::Fault;
using retrograd::testing::live_blocks;
using retrograd::testing::RequestSites;

constexpr int kNotReached = 0, kPassed = 1, kFailed = 3;  // exit codes of a case
constexpr unsigned kMostSeconds = 60;                     // a case takes milliseconds; more is a deadlock
constexpr size_t kMostThreads = 100;                      // that a call starts
constexpr int kMostAlike = 3;  // calls that are refused what the same callers ask for
constexpr size_t kNever = 1'000'000'000;

bool leaks_too = true;  // look for them as well

std::vector<ExportedCall> all_calls() {
  std::vector<ExportedCall> calls;
  for (const auto& some : {exported_acl_calls(), exported_infini_calls(), exported_retrograd_calls()})
    calls.insert(calls.end(), some.begin(), some.end());
  return calls;
}

[[noreturn, gnu::format(printf, 1, 2)]] void fail(const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
  std::_Exit(kFailed);
}

// What the failing call left for its caller to read.
std::string message_of(const ExportedCall& row) {
  const bool acl = row.out_of_memory != kInfiniOutOfMemory && row.out_of_memory != kRetrogradOutOfMemory;
  const char* const text = acl ? aclGetRecentErrMsg() : retrogradGetLastError();
  return text == nullptr ? "" : text;
}

// One whole life of a call: set up, refused once, repeated, undone. False when nothing was refused.
bool live_through(const ExportedCall& row, Fault fault, size_t nth, bool first) {
  row.setup();
  written = Written();
  int code = 0;
  bool happened = false;
  {
    const FailingAllocations failing(fault, nth);
    code = row.call();
    happened = failing.happened();
  }
  if (code != row.expected) {
    if (!happened) fail("returned %d with memory enough", code);
    if (code != row.out_of_memory) fail("returned %d, expected %d", code, row.out_of_memory);
    if (!written.untouched()) fail("wrote a result although it failed");
  }
  // Earlier failures of this process have left texts that retrogradGetLastError would show.
  if (code != 0 && first && message_of(row).empty()) fail("returned %d without a message", code);
  if (code != row.expected) {
    code = row.call();
    if (code != row.expected) fail("returned %d when repeated: %s", code, message_of(row).c_str());
  }
  if (code == 0 && row.undo != nullptr) row.undo();
  row.teardown();
  return happened;
}

// Whether the failing call keeps memory: blocks that grow in number each time. Stacks of ended threads, which
// the C library keeps, and tables' room grow too, but not for ever.
void look_for_leaks(const ExportedCall& row, Fault fault, size_t nth) {
  live_through(row, fault, kNever, false);  // makes what is made once
  std::array<long, 4> live;
  for (long& after : live) {
    live_through(row, fault, nth, false);
    after = live_blocks();
  }
  for (size_t i = 2; i < live.size(); ++i)
    if (live[i] <= live[i - 1]) return;
  fail("keeps %ld blocks each time", live.back() - live[live.size() - 2]);
}

int run_case(const ExportedCall& row, Fault fault, size_t nth) {
  alarm(kMostSeconds);
  const bool happened = live_through(row, fault, nth, true);
  // What the log writes besides is not worth the time.
  if (happened && leaks_too) look_for_leaks(row, fault, nth);
  return happened ? kPassed : kNotReached;
}

// A case in a process of its own.
struct Forked {
  pid_t child;
  FILE* captured;  // what it writes to stderr
};

Forked start_case(const ExportedCall& row, Fault fault, size_t nth) {
  FILE* const captured = std::tmpfile();
  const pid_t child = fork();
  if (child == 0) {
    dup2(fileno(captured), STDERR_FILENO);
    std::_Exit(run_case(row, fault, nth));
  }
  return {child, captured};
}

// The exit code of the case, and what it wrote.
int end_of(const Forked& forked, std::string& output) {
  int status = 0;
  waitpid(forked.child, &status, 0);
  std::array<char, 1000> buffer;  // the end of it: the log may come before
  if (std::fseek(forked.captured, -long{buffer.size()}, SEEK_END) != 0) std::rewind(forked.captured);
  output.assign(buffer.data(), std::fread(buffer.data(), 1, buffer.size(), forked.captured));
  std::fclose(forked.captured);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  output += std::string("\ndied of ") + strsignal(WTERMSIG(status));
  return kFailed;
}

constexpr size_t kAtOnce = 4;

struct Tally {
  size_t cases = 0, rows = 0, rows_without = 0;
};

// The requests for memory of a call, from a process in which none is refused.
struct Requests {
  RequestSites* sites = static_cast<RequestSites*>(
      mmap(nullptr, sizeof(RequestSites), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  explicit Requests(const ExportedCall& row) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(kMostSeconds);
      note_requests(*new (sites) RequestSites);
      live_through(row, Fault::kOneAllocation, kNever, true);
      std::_Exit(kPassed);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == kPassed) << row.name << " with memory enough";
    EXPECT_LE(sites->count, sites->callers.size()) << row.name;
  }
  ~Requests() { munmap(sites, sizeof(RequestSites)); }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
};

// Numbers of the requests that are to be refused, and who has been refused before: what a process makes once,
// hundreds of blocks in loops, is the same for every call.
using Seen = std::map<uint64_t, int>;
std::vector<size_t> to_refuse(const ExportedCall& row, Seen& seen) {
  const Requests requests(row);
  std::vector<size_t> numbers;
  std::set<uint64_t> here;
  for (size_t i = 0; i < std::min<size_t>(requests.sites->count, requests.sites->callers.size()); ++i) {
    const uint64_t caller = requests.sites->callers[i];
    if (here.insert(caller).second && seen[caller]++ < kMostAlike) numbers.push_back(i + 1);
  }
  return numbers;
}
std::vector<size_t> all_threads() {
  std::vector<size_t> numbers(kMostThreads);
  std::iota(numbers.begin(), numbers.end(), size_t{1});
  return numbers;
}

// Refuses these requests of one call, a few side by side: most of what a case takes is waiting for the
// threads that it starts and ends.
void check_row(const ExportedCall& row, Fault fault, const char* what, const std::vector<size_t>& numbers,
               Tally& tally) {
  ++tally.rows;
  bool reached = false;  // any of them
  for (size_t first = 0; first < numbers.size(); first += kAtOnce) {
    std::array<Forked, kAtOnce> cases;
    const size_t count = std::min(kAtOnce, numbers.size() - first);
    for (size_t i = 0; i < count; ++i) cases[i] = start_case(row, fault, numbers[first + i]);
    size_t now = 0;
    for (size_t i = 0; i < count; ++i) {
      std::string output;
      const int ended = end_of(cases[i], output);
      if (ended != kNotReached && ended != kPassed)
        ADD_FAILURE() << row.name << " with " << what << " number " << numbers[first + i]
                      << " refused: " << output;
      now += ended != kNotReached ? 1 : 0;
    }
    tally.cases += now;
    reached = reached || now > 0;
    if (now == 0) break;  // it asks for fewer
  }
  tally.rows_without += reached ? 0 : 1;
}

void check_everywhere(Fault fault, const char* what) {
  const bool threads = fault == Fault::kOneThread || fault == Fault::kAllThreads;
  Tally tally;
  Seen seen;
  for (const ExportedCall& row : all_calls())
    check_row(row, fault, what, threads ? all_threads() : to_refuse(row, seen), tally);
  std::printf("%zu cases, %zu rows, of which %zu ask for none\n", tally.cases, tally.rows,
              tally.rows_without);
  EXPECT_GT(tally.cases, 0u);
}

class OutOfMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    // More than one worker: a pool may be refused in the middle.
    setenv("RETROGRAD_NUM_THREADS", "3", 1);
    setenv("RETROGRAD_VERBOSE", "warning", 1);
    if (!retrograd::testing::replaces_malloc())
      std::printf("operator new alone is refused: a sanitizer's malloc cannot be stood in front of\n");
  }
};

TEST_F(OutOfMemory, OneAllocationRefused) { check_everywhere(Fault::kOneAllocation, "allocation"); }

TEST_F(OutOfMemory, AllAllocationsRefusedFromOneOn) {
  check_everywhere(Fault::kAllAllocations, "all allocations from");
}

// Records of the log are lost then, and nothing else; some are written by streams' threads.
TEST_F(OutOfMemory, OneAllocationRefusedWithALog) {
  if (!retrograd::testing::replaces_malloc())
    GTEST_SKIP() << "the release run does it; a sanitized process takes long to fork";
  setenv("RETROGRAD_VERBOSE", "call,error", 1);
  leaks_too = false;
  check_everywhere(Fault::kOneAllocation, "allocation");
  leaks_too = true;
}

TEST_F(OutOfMemory, OneThreadRefused) { check_everywhere(Fault::kOneThread, "thread"); }

TEST_F(OutOfMemory, AllThreadsRefusedFromOneOn) { check_everywhere(Fault::kAllThreads, "all threads from"); }

// The table and the export list name the same functions.
TEST(ExportedCalls, AreThoseOfTheList) {
  std::set<std::string> exported, listed;
  std::ifstream file(EXPORTS_FILE);
  for (std::string line; std::getline(file, line);)
    if (!line.empty() && line[0] != '#') exported.insert(line);
  ASSERT_GT(exported.size(), 100u);
  for (const ExportedCall& row : all_calls()) listed.insert(row.name);
  EXPECT_EQ(listed, exported);
}

// The parts of this test can fail: a call that dies, hangs up half-way, leaks or forgets its message is seen.
int sloppy(Fault fault, const ExportedCall& row) {
  std::string output;
  return end_of(start_case(row, fault, 1), output);
}

TEST(SloppyCalls, AreSeen) {
  const auto nothing = [] {};
  const auto leaks = [] {
    static std::vector<int*> kept;
    int* const block = new (std::nothrow) int(7);
    if (block == nullptr) return kInfiniOutOfMemory;
    kept.push_back(block);
    return 0;
  };
  const auto dies = []() noexcept -> int {
    static std::vector<int> grows;
    grows.resize(grows.size() + 1000);
    return 0;
  };
  const auto is_silent = []() -> int {
    const int* const block = new (std::nothrow) int(0);
    const int code = block == nullptr ? kAclOutOfMemory : 0;
    delete block;
    return code;
  };
  const auto is_fine = [] { return 0; };
  EXPECT_EQ(sloppy(Fault::kOneAllocation, {"leaks", kInfiniOutOfMemory, nothing, leaks, nullptr, nothing}),
            kFailed);
  EXPECT_EQ(sloppy(Fault::kOneAllocation, {"dies", kInfiniOutOfMemory, nothing, dies, nullptr, nothing}),
            kFailed);
  EXPECT_EQ(sloppy(Fault::kOneAllocation, {"silent", kAclOutOfMemory, nothing, is_silent, nullptr, nothing}),
            kFailed);
  EXPECT_EQ(sloppy(Fault::kOneAllocation, {"fine", kInfiniOutOfMemory, nothing, is_fine, nullptr, nothing}),
            kNotReached);
}

// Blocks of a loop are asked for by one caller, of whom one is refused; those of another one are told apart.
TEST(Requests, OfDifferentCallersAreToldApart) {
  const auto some = [] {
    static std::array<int*, 6> blocks;  // or the compiler leaves them out
    const volatile size_t count = 4;
    for (size_t i = 0; i < count; ++i) blocks[i] = new int(1);
    blocks[4] = new int(2);
    blocks[5] = new int(3);
    for (const int* block : blocks) delete block;
    return 0;
  };
  Seen seen;
  const ExportedCall row = {"some", kInfiniOutOfMemory, [] {}, some, nullptr, [] {}};
  for (int time = 0; time <= kMostAlike; ++time)  // one loop: its callers count
    EXPECT_EQ(to_refuse(row, seen),
              time < kMostAlike ? std::vector<size_t>({1, 5, 6}) : std::vector<size_t>());
}

}  // namespace

void require(bool good, const char* what) {
  if (good) return;
  const char* const acl = aclGetRecentErrMsg();
  fail("the preparation failed: %s: %s", what, acl != nullptr ? acl : retrogradGetLastError());
}

}  // namespace retrograd::test

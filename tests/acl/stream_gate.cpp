// SPDX-License-Identifier: Apache-2.0
// The page, the fault and the waiting.
#include "stream_gate.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>

#include <atomic>
#include <cstdint>

namespace retrograd::acl_test {
namespace {

constexpr size_t kPageBytes = 4096;

// What the handler reads; a handler has no other way to be told.
std::atomic<uintptr_t> held_page{0};
std::atomic<bool> reached{false};
std::atomic<bool> is_open{false};
std::atomic<bool> passed{false};
struct sigaction previous_action;
unsigned char copied[kPageBytes];

void pause_briefly() {
  const timespec pause{0, 200'000};
  nanosleep(&pause, nullptr);
}

void on_fault(int, siginfo_t* info, void*) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  const uintptr_t page = held_page;
  if (page == 0 || address - page >= kPageBytes) {
    sigaction(SIGSEGV, &previous_action,
              nullptr);  // a real fault: let it happen again, to whoever handled it before
    return;
  }
  reached = true;
  while (!is_open) pause_briefly();
  mprotect(reinterpret_cast<void*>(page), kPageBytes, PROT_READ);
  passed = true;
}

}  // namespace

StreamGate::StreamGate(aclrtStream stream) {
  void* page = mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_NE(page, MAP_FAILED);
  EXPECT_EQ(held_page, 0U) << "one gate at a time";
  reached = false;
  is_open = false;
  passed = false;
  held_page = reinterpret_cast<uintptr_t>(page);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO;
  EXPECT_EQ(sigaction(SIGSEGV, &action, &previous_action), 0);
  EXPECT_EQ(aclrtMemcpyAsync(copied, kPageBytes, page, kPageBytes, ACL_MEMCPY_HOST_TO_HOST, stream),
            ACL_SUCCESS);
  while (!reached) pause_briefly();
}

StreamGate::~StreamGate() {
  if (opener_.joinable()) opener_.join();
  open();
  while (!passed) pause_briefly();
  sigaction(SIGSEGV, &previous_action, nullptr);
  munmap(reinterpret_cast<void*>(held_page.exchange(0)), kPageBytes);
}

void StreamGate::open() { is_open = true; }

void StreamGate::open_after(std::chrono::milliseconds delay) {
  opener_ = std::thread([delay] {
    std::this_thread::sleep_for(delay);
    is_open = true;
  });
}

}  // namespace retrograd::acl_test

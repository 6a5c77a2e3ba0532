// SPDX-License-Identifier: Apache-2.0
// The handlers use write, siglongjmp and _exit alone.
#include "support/fault_guard.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstring>

// There in sanitized programs only.
extern "C" void __sanitizer_set_death_callback(void (*callback)()) __attribute__((weak));

namespace retrograd::test {
namespace {

char doing_now[16384] = "";
sigjmp_buf way_out;
volatile sig_atomic_t armed = 0;
pthread_t armed_thread;

void say(const char* text) {
  [[maybe_unused]] const auto written = write(STDOUT_FILENO, text, std::strlen(text));
}

void say_what_was_done() {
  say("while ");
  say(doing_now);
  say("\n");
}

extern "C" void on_fault(int signal) {
  if (armed != 0 && pthread_equal(pthread_self(), armed_thread) != 0) siglongjmp(way_out, signal);
  say("\nFAILED with ");
  say(strsignal(signal));
  say(", on another thread than the caller's: RETROGRAD_NUM_THREADS=1 may show more\n");
  say_what_was_done();
  _exit(1);
}

extern "C" void on_end(int signal) {
  say("\nFAILED: ended by ");
  say(strsignal(signal));
  say("\n");
  say_what_was_done();
  _exit(1);
}

}  // namespace
}  // namespace retrograd::test

// The undefined-behaviour sanitizer calls this before it ends the program; it knows nothing of the callback.
extern "C" void __ubsan_on_report();
extern "C" void __ubsan_on_report() { retrograd::test::say_what_was_done(); }

namespace retrograd::test {

void FaultGuard::install() {
  struct sigaction action = {};
  action.sa_handler = on_fault;
  action.sa_flags = SA_NODEFER;  // the handler is left by a jump
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) sigaction(signal, &action, nullptr);
  action.sa_handler = on_end;
  for (const int signal : {SIGABRT, SIGALRM, SIGTERM}) sigaction(signal, &action, nullptr);
  if (__sanitizer_set_death_callback != nullptr) __sanitizer_set_death_callback(say_what_was_done);
}

void FaultGuard::note(std::string_view doing, unsigned seconds) {
  const size_t length = std::min(doing.size(), sizeof doing_now - 1);
  std::memcpy(doing_now, doing.data(), length);
  doing_now[length] = '\0';
  alarm(seconds);
}

void FaultGuard::done() { alarm(0); }

sigjmp_buf* FaultGuard::arm() {
  armed_thread = pthread_self();
  armed = 1;
  return &way_out;
}
void FaultGuard::disarm() { armed = 0; }

}  // namespace retrograd::test

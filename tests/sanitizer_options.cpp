// SPDX-License-Identifier: Apache-2.0
// What the sanitizers do in our test programs, however they are started; without a sanitizer nobody asks.
//
// allocator_may_return_null: tests ask for more memory than there is and expect a status, as from any
// allocator. atexit_sleep_ms: by default a second at each exit, and every test is a process.

extern "C" {

const char* __asan_default_options();
const char* __asan_default_options() {
  return "detect_leaks=1:halt_on_error=1:detect_stack_use_after_return=1:strict_string_checks=1:"
         "allocator_may_return_null=1";
}

const char* __ubsan_default_options();
const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }

const char* __tsan_default_options();
const char* __tsan_default_options() {
  return "halt_on_error=1:second_deadlock_stack=1:allocator_may_return_null=1:atexit_sleep_ms=20";
}
}

// SPDX-License-Identifier: Apache-2.0
// A program that loads the library, uses it, finalises and unloads it. Threads of the library's pool sleep
// on: when a signal wakes them they must find their code.
#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "acl/acl.h"

namespace {

std::atomic<int> woken{0};

void on_signal(int) { ++woken; }

void must(bool fine, const char* what) {
  if (fine) return;
  std::printf("%s failed: %s\n", what, dlerror());
  std::exit(1);
}

template <class Function>
Function* find(void* library, const char* name, Function* /*declared*/) {
  void* const found = dlsym(library, name);
  must(found != nullptr, name);
  return reinterpret_cast<Function*>(found);
}
#define RG_FIND(library, function) find(library, #function, &function)

// Interrupts the sleep of every other thread; how many there are.
int wake_threads() {
  int count = 0;
  DIR* const tasks = opendir("/proc/self/task");
  must(tasks != nullptr, "opendir");
  while (const dirent* entry = readdir(tasks)) {
    const long thread = std::atol(entry->d_name);
    if (thread <= 0 || thread == syscall(SYS_gettid)) continue;
    must(syscall(SYS_tgkill, getpid(), thread, SIGUSR1) == 0, "tgkill");
    ++count;
  }
  closedir(tasks);
  return count;
}

}  // namespace

int main(int count, char** arguments) {
  must(count == 2, "arguments: the library's path");
  signal(SIGUSR1, on_signal);
  void* const library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  must(library != nullptr, "dlopen");
  aclrtStream stream = nullptr;
  must(RG_FIND(library, aclInit)(nullptr) == ACL_SUCCESS, "aclInit");
  must(RG_FIND(library, aclrtSetDevice)(0) == ACL_SUCCESS, "aclrtSetDevice");
  must(RG_FIND(library, aclrtCreateStream)(&stream) == ACL_SUCCESS, "aclrtCreateStream");
  must(RG_FIND(library, aclrtDestroyStream)(stream) == ACL_SUCCESS, "aclrtDestroyStream");
  must(RG_FIND(library, aclFinalize)() == ACL_SUCCESS, "aclFinalize");
  must(dlclose(library) == 0, "dlclose");
  const int threads = wake_threads();
  while (woken < threads) usleep(1000);
  must(threads > 0, "the pool's threads");
  std::printf("%d threads lived on\n", threads);
  std::fflush(stdout);
  // Once more: they may be loaded a second time.
  void* const again = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  must(again != nullptr, "dlopen");
  must(RG_FIND(again, aclInit)(nullptr) == ACL_SUCCESS, "aclInit");
  must(RG_FIND(again, aclFinalize)() == ACL_SUCCESS, "aclFinalize");
  must(dlclose(again) == 0, "dlclose");
  std::printf("unloaded twice\n");
}

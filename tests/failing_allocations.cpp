// SPDX-License-Identifier: Apache-2.0
// The program's allocator and pthread_create, in front of the C library's.
#include "failing_allocations.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "sanitizers.h"

namespace retrograd::testing {
namespace {

std::atomic<RequestSites*> noted{nullptr};
thread_local bool noting = false;  // the search for callers may allocate

// Fourteen callers, of which some are ours and the standard library's, tell apart who asks and for whom.
void note_caller() {
  RequestSites* const sites = noted.load(std::memory_order_relaxed);
  if (sites == nullptr || noting) return;
  noting = true;
  std::array<void*, 14> frames;
  const int depth = backtrace(frames.data(), static_cast<int>(frames.size()));
  uint64_t number = 14695981039346656037u;
  for (int i = 0; i < depth; ++i)
    number = (number ^ reinterpret_cast<uintptr_t>(frames[static_cast<size_t>(i)])) * 1099511628211u;
  const size_t request = sites->count.fetch_add(1, std::memory_order_relaxed);
  if (request < sites->callers.size()) sites->callers[request] = number;
  noting = false;
}

// Requests are numbered downwards from the n-th, which is number 1; refused are 1, or 1 and below.
struct Refusals {
  std::atomic<bool> armed{false};
  std::atomic<bool> all{false};
  std::atomic<int64_t> left{0};
  std::atomic<bool> happened{false};

  bool refuse() {
    if (!armed.load(std::memory_order_relaxed)) return false;
    note_caller();
    const int64_t number = left.fetch_sub(1, std::memory_order_relaxed);
    const bool refused = number == 1 || (number < 1 && all.load(std::memory_order_relaxed));
    if (!refused) return false;
    happened.store(true, std::memory_order_relaxed);
    errno = ENOMEM;  // the C library asserts it
    return true;
  }
};

constinit Refusals memory, threads;
constinit std::atomic<long> live{0};

void* counted(void* block) {
  if (block != nullptr) live.fetch_add(1, std::memory_order_relaxed);
  return block;
}

void uncounted(const void* block) {
  if (block != nullptr) live.fetch_sub(1, std::memory_order_relaxed);
}

using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
// Looked up before main: the search may allocate.
const auto real_create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));

}  // namespace

FailingAllocations::FailingAllocations(Fault fault, size_t nth) {
  const bool of_threads = fault == Fault::kOneThread || fault == Fault::kAllThreads;
  Refusals& refusals = of_threads ? threads : memory;
  refusals.all = fault == Fault::kAllAllocations || fault == Fault::kAllThreads;
  refusals.left = static_cast<int64_t>(nth);
  memory.happened = threads.happened = false;
  refusals.armed = true;
}

FailingAllocations::~FailingAllocations() { memory.armed = threads.armed = false; }

bool FailingAllocations::happened() const { return memory.happened || threads.happened; }

void note_requests(RequestSites& sites) {
  std::array<void*, 1> frame;
  backtrace(frame.data(), 1);  // loads what it needs
  noted = &sites;
}

long live_blocks() { return live; }

bool replaces_malloc() {
#ifdef RG_SANITIZER
  return false;
#else
  return true;
#endif
}

}  // namespace retrograd::testing

using retrograd::testing::counted;
using retrograd::testing::memory;
using retrograd::testing::uncounted;

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*),
                              void* argument) noexcept {
  if (retrograd::testing::threads.refuse()) return EAGAIN;
  return retrograd::testing::real_create(thread, attributes, start, argument);
}

#ifdef RG_SANITIZER

void* operator new(size_t bytes, const std::nothrow_t&) noexcept {
  return memory.refuse() ? nullptr : counted(std::malloc(bytes == 0 ? 1 : bytes));
}
void* operator new(size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  void* block = nullptr;
  if (memory.refuse() || posix_memalign(&block, static_cast<size_t>(alignment), bytes) != 0) return nullptr;
  return counted(block);
}
void* operator new(size_t bytes) {
  void* const block = operator new(bytes, std::nothrow);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new(size_t bytes, std::align_val_t alignment) {
  void* const block = operator new(bytes, alignment, std::nothrow);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}
void* operator new[](size_t bytes) { return operator new(bytes); }
void* operator new[](size_t bytes, std::align_val_t alignment) { return operator new(bytes, alignment); }

void operator delete(void* block) noexcept {
  uncounted(block);
  std::free(block);
}
void operator delete(void* block, size_t) noexcept { operator delete(block); }
void operator delete(void* block, std::align_val_t) noexcept { operator delete(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { operator delete(block); }
void operator delete[](void* block) noexcept { operator delete(block); }
void operator delete[](void* block, size_t) noexcept { operator delete(block); }
void operator delete[](void* block, std::align_val_t) noexcept { operator delete(block); }
void operator delete[](void* block, size_t, std::align_val_t) noexcept { operator delete(block); }

#else

// glibc's own entry points, below the names we take over. Its operator new, strdup and the like call malloc.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
void __libc_free(void* block);

void* malloc(size_t bytes) noexcept { return memory.refuse() ? nullptr : counted(__libc_malloc(bytes)); }

void* calloc(size_t count, size_t bytes) noexcept {
  return memory.refuse() ? nullptr : counted(__libc_calloc(count, bytes));
}

void* realloc(void* old, size_t bytes) noexcept {
  if (memory.refuse()) return nullptr;
  void* const block = __libc_realloc(old, bytes);
  if (block != nullptr || bytes == 0) uncounted(old);
  return counted(block);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  return memory.refuse() ? nullptr : counted(__libc_memalign(alignment, bytes));
}

void* memalign(size_t alignment, size_t bytes) noexcept { return aligned_alloc(alignment, bytes); }

int posix_memalign(void** address, size_t alignment, size_t bytes) noexcept {
  const bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!power_of_two || alignment % sizeof(void*) != 0) return EINVAL;
  void* const block = aligned_alloc(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *address = block;
  return 0;
}

void free(void* block) noexcept {
  uncounted(block);
  __libc_free(block);
}
}

#endif

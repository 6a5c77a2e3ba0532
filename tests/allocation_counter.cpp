// SPDX-License-Identifier: Apache-2.0
// Counting allocations: by standing in front of the C library's, or by the hooks of a sanitizer's allocator.
#include "allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>

#include "sanitizers.h"

namespace {

std::atomic<bool> counting{false};
std::atomic<size_t> allocations{0};

void note() {
  if (counting.load(std::memory_order_relaxed)) allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

#ifdef RG_SANITIZER

// Declared here: g++ has it in its run-time library, but no header for it.
extern "C" int __sanitizer_install_malloc_and_free_hooks(void (*allocated)(const volatile void*, size_t),
                                                         void (*freed)(const volatile void*));

namespace {

[[maybe_unused]] const int installed = __sanitizer_install_malloc_and_free_hooks(
    [](const volatile void*, size_t) { note(); }, [](const volatile void*) {});

}  // namespace

#else

// glibc's own entry points, below the names we take over.
extern "C" {
void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* old, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);

void* malloc(size_t bytes) noexcept {
  note();
  return __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) noexcept {
  note();
  return __libc_calloc(count, bytes);
}

void* realloc(void* old, size_t bytes) noexcept {
  note();
  return __libc_realloc(old, bytes);
}

void* aligned_alloc(size_t alignment, size_t bytes) noexcept {
  note();
  return __libc_memalign(alignment, bytes);
}

int posix_memalign(void** address, size_t alignment, size_t bytes) noexcept {
  note();
  const bool power_of_two = alignment != 0 && (alignment & (alignment - 1)) == 0;
  if (!power_of_two || alignment % sizeof(void*) != 0) return EINVAL;
  void* const block = __libc_memalign(alignment, bytes);
  if (block == nullptr) return ENOMEM;
  *address = block;
  return 0;
}
}

#endif

namespace retrograd::testing {

AllocationCounter::AllocationCounter() {
  allocations = 0;
  counting = true;
}

AllocationCounter::~AllocationCounter() { counting = false; }

size_t AllocationCounter::count() const { return allocations; }

bool AllocationCounter::sees_aligned_allocations() {
#ifdef RG_THREAD_SANITIZER
  return false;
#else
  return true;
#endif
}

}  // namespace retrograd::testing

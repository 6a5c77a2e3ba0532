// SPDX-License-Identifier: Apache-2.0
// Each thread has two text buffers: a text that take() returned must stay valid while the next set() writes,
// so set() writes to the other buffer.
//
// Reporting must also work when memory is exhausted. A thread_local with a destructor would not: registering
// the destructor allocates, and the C library aborts when that fails. The buffers are therefore plain memory
// behind a per-thread pointer, allocated with nothrow new and freed by a pthread key. Sixteen are allocated
// in advance for threads whose first failure is that memory is exhausted; when those are used up, a thread
// gets one fixed text.
#include "base/last_error.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "base/log.h"
#include "base/thread_slot.h"

namespace retrograd::last_error {
namespace {

constexpr const char* kNoMemory =
    "the call failed, and there was no memory for its message: the code it returned is all that is known";

// A text, or as much of it as fits inside the object when there is no memory for all of it.
class Buffer {
 public:
  void set(std::string text) noexcept {
    whole_ = std::move(text);
    cut_short_ = false;
  }
  void set(const char* text) noexcept {
    try {
      whole_ = text;
      cut_short_ = false;
    } catch (...) {
      const size_t length = std::min(std::strlen(text), sizeof part_ - 1);
      std::memcpy(part_, text, length);
      part_[length] = '\0';
      cut_short_ = true;
    }
  }
  const char* c_str() const { return cut_short_ ? part_ : whole_.c_str(); }

 private:
  std::string whole_;
  char part_[256] = {};
  bool cut_short_ = false;
};

struct Texts {
  Buffer buffers[2];
  int newest = 0;
  int taken = -1;  // the buffer take() handed out last
  bool pending = false;
};

// Texts laid by, made when the library is loaded.
class Reserve {
 public:
  Reserve() {
    for (Place& place : places_) new (place.memory) Texts;
  }
  Texts* take() {
    for (Place& place : places_)
      if (!place.taken.test_and_set(std::memory_order_acquire)) return texts_in(place);
    return nullptr;
  }
  // False when they are none of these.
  bool give_back(Texts* texts) {
    for (Place& place : places_) {
      if (texts_in(place) != texts) continue;
      *texts = Texts();
      place.taken.clear(std::memory_order_release);
      return true;
    }
    return false;
  }

 private:
  // Never destroyed: threads may fail while the process exits.
  struct Place {
    std::atomic_flag taken;
    alignas(Texts) std::byte memory[sizeof(Texts)];
  };
  static Texts* texts_in(Place& place) { return std::launder(reinterpret_cast<Texts*>(place.memory)); }
  Place places_[16];
} reserve;

// What a thread has that failed without memory for texts: before and after it was told so. Never written to.
Texts lost, lost_and_told;
bool is_lost(const Texts* texts) { return texts == &lost || texts == &lost_and_told; }

// Frees the texts of a thread that ends. Those of the main thread live as long as the process: static
// destructors of callers may still fail, and read why.
void free_texts(void* address) {
  auto* const texts = static_cast<Texts*>(address);
  if (!is_lost(texts) && !reserve.give_back(texts)) delete texts;
}

const ThreadSlot<Texts> slot(free_texts);

Texts* texts_of_this_thread() {
  if (Texts* const texts = slot.get(); texts != nullptr && !is_lost(texts)) return texts;
  Texts* made = new (std::nothrow) Texts;
  if (made == nullptr) made = reserve.take();
  if (made == nullptr || slot.set(made)) return made;
  if (!reserve.give_back(made)) delete made;
  return nullptr;
}

template <class Text>
void keep(Text&& text) {
  Texts* const texts = texts_of_this_thread();
  if (texts == nullptr) {
    static_cast<void>(slot.set(&lost));
    return;
  }
  texts->pending = true;
  if (texts->newest == texts->taken) texts->newest = 1 - texts->newest;
  texts->buffers[texts->newest].set(std::forward<Text>(text));
}

// Without a string: the memory for one may be what is missing.
int report_text(int number, const char* function, const char* what) noexcept {
  char text[256];
  std::snprintf(text, sizeof text, "%d %s: %s", number, function, what);
  set(text);
  return number;
}

}  // namespace

void set(std::string text) noexcept {
  log::write(log::Topic::kError, text);
  keep(std::move(text));
}

void set(const char* text) noexcept {
  if (text == nullptr) text = "";
  log::write(log::Topic::kError, text);
  keep(text);
}

int report(int number, const char* function, const std::string& sentence) noexcept {
  if (number == 0) return number;
  try {
    set(fmt::format("{} {}: {}", number, function, sentence));
  } catch (...) {
    report_text(number, function, "no memory for the text of this failure");
  }
  return number;
}

int report_exception(int (*number_of)(Code), const char* function) noexcept {
  std::exception_ptr held;  // keeps the text of what() while it is printed
  try {
    held = std::current_exception();
    throw;
  } catch (const std::bad_alloc&) {
    return report_text(number_of(Code::kOutOfMemory), function, "the host is out of memory");
  } catch (const std::exception& error) {
    return report_text(number_of(Code::kInternal), function, error.what());
  } catch (...) {
    return report_text(number_of(Code::kInternal), function, "an unknown exception");
  }
}

const char* take() noexcept {
  Texts* const texts = slot.get();
  if (texts == nullptr || texts == &lost_and_told) return nullptr;
  if (texts == &lost) {
    static_cast<void>(slot.set(&lost_and_told));
    return kNoMemory;
  }
  if (!std::exchange(texts->pending, false)) return nullptr;
  texts->taken = texts->newest;
  return texts->buffers[texts->newest].c_str();
}

const char* peek() noexcept {
  const Texts* const texts = slot.get();
  if (texts == nullptr) return "";
  return is_lost(texts) ? kNoMemory : texts->buffers[texts->newest].c_str();
}

}  // namespace retrograd::last_error

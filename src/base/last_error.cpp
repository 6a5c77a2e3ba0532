// SPDX-License-Identifier: Apache-2.0
// Two text buffers a thread: what take() handed out must outlive the next set(), so that one writes to the
// other.
#include "base/last_error.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/log.h"

namespace retrograd::last_error {
namespace {

// A caller's static destructors may still fail after the main thread's thread_locals are gone. This flag has
// no destructor and stays readable; from then on texts go to the log only.
thread_local constinit bool gone = false;

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
  ~Texts() { gone = true; }

  Buffer buffers[2];
  int newest = 0;
  int taken = -1;  // the buffer take() handed out last
  bool pending = false;
};

Texts* texts_of_this_thread() {
  if (gone) return nullptr;
  thread_local Texts texts;
  return &texts;
}

Buffer& next_buffer(Texts& texts) {
  if (texts.newest == texts.taken) texts.newest = 1 - texts.newest;
  texts.pending = true;
  return texts.buffers[texts.newest];
}

}  // namespace

void set(std::string text) noexcept {
  log::write(log::Topic::kError, text);
  if (Texts* texts = texts_of_this_thread()) next_buffer(*texts).set(std::move(text));
}

void set(const char* text) noexcept {
  if (text == nullptr) text = "";
  log::write(log::Topic::kError, text);
  if (Texts* texts = texts_of_this_thread()) next_buffer(*texts).set(text);
}

const char* take() noexcept {
  Texts* texts = texts_of_this_thread();
  if (texts == nullptr || !texts->pending) return nullptr;
  texts->pending = false;
  texts->taken = texts->newest;
  return texts->buffers[texts->newest].c_str();
}

const char* peek() noexcept {
  const Texts* texts = texts_of_this_thread();
  return texts == nullptr ? "" : texts->buffers[texts->newest].c_str();
}

}  // namespace retrograd::last_error

// SPDX-License-Identifier: Apache-2.0
// Draws the bar on stderr.
#include "tools/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "tools/print_error.h"

namespace retrograd::tools {

Progress::Progress(size_t total) : total_(total), terminal_(total > 1 && isatty(STDERR_FILENO) != 0) {}

void Progress::show(size_t done, std::string_view what) {
  if (!terminal_) return;
  constexpr size_t kWidth = 30;
  const size_t full = total_ == 0 ? 0 : done * kWidth / total_;
  print_error("\r\033[K[{:#>{}}{:>{}}] {}/{} {}", "", full, "", kWidth - full, done + 1, total_,
              what.substr(0, 40));
  std::fflush(stderr);
  shown_ = true;
}

void Progress::clear() {
  if (!shown_) return;
  print_error("\r\033[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace retrograd::tools

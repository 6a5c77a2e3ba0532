// SPDX-License-Identifier: Apache-2.0
// A progress bar on a terminal; nothing elsewhere.
#pragma once

#include <string_view>

namespace retrograd::tools {

class Progress {
 public:
  explicit Progress(size_t total);
  ~Progress() { clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // Shows that item `done` (from 0) is being worked on.
  void show(size_t done, std::string_view what);
  // Takes the bar away, so that a line can be printed.
  void clear();

 private:
  size_t total_;
  bool terminal_;
  bool shown_ = false;
};

}  // namespace retrograd::tools

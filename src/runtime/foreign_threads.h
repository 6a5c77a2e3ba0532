// SPDX-License-Identifier: Apache-2.0
// ForeignThreads: a parallel loop that the host program sets (PyTorch's, or an OpenMP program's). Our loops
// then run on its threads: two thread pools on the same cores would slow each other down.
#pragma once

#include <cstdint>

namespace retrograd::runtime {

struct ForeignThreads {
  using Piece = void (*)(void* piece_context, int64_t piece);
  // Calls piece(piece_context, i) once for each i in [0, pieces), and returns when all have returned.
  void (*parallel_for)(void* context, int64_t pieces, Piece piece, void* piece_context) = nullptr;
  int (*thread_count)(void* context) = nullptr;  // null: nobody knows
  void* context = nullptr;

  friend bool operator==(const ForeignThreads& a, const ForeignThreads& b) {
    return a.parallel_for == b.parallel_for && a.thread_count == b.thread_count && a.context == b.context;
  }
};

// For loops that begin from now on; without parallel_for our own threads run them again.
void set_foreign_threads(const ForeignThreads& threads);
// Null when our own threads run the loops, as in a forked child: the host's threads are not there. What it
// points to lives as long as the process.
const ForeignThreads* foreign_threads() noexcept;

}  // namespace retrograd::runtime

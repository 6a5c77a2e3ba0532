// SPDX-License-Identifier: Apache-2.0
#include "process_state.h"

#include <pthread.h>
#include <torch/csrc/stable/c/shim.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "retrograd/retrograd.h"

namespace retrograd_torch {
namespace {

std::atomic<ProcessState*> current{nullptr};
std::atomic<bool> on_torch_threads{false};

constexpr int64_t kMostThreads = 1024;

int torch_thread_count(void*) {
  uint32_t threads = 1;
  if (torch_get_num_threads(&threads) != 0) return 1;
  return static_cast<int>(std::min<int64_t>(threads, kMostThreads));
}

struct Loop {
  retrogradPiece_t piece;
  void* piece_context;
  std::array<bool, kMostThreads> begun{};
};

// at::parallel_for gives every thread one range of pieces. Pieces take work from one counter, so a thread
// that comes late costs nothing.
void torch_loop(void*, int64_t pieces, retrogradPiece_t piece, void* piece_context) {
  Loop loop{piece, piece_context};
  const auto range = [](int64_t begin, int64_t end, void* context) {
    Loop& loop = *static_cast<Loop*>(context);
    for (int64_t i = begin; i < end; ++i) {
      if (i < kMostThreads) loop.begun[static_cast<size_t>(i)] = true;
      loop.piece(loop.piece_context, i);
    }
  };
  if (torch_parallel_for(0, pieces, 1, range, &loop) == 0) return;
  // No threads were to be had for some of them.
  for (int64_t i = 0; i < pieces; ++i)
    if (i >= kMostThreads || !loop.begun[static_cast<size_t>(i)]) piece(piece_context, i);
}

retrogradStatus_t set_loops() {
  return on_torch_threads.load() ? retrogradSetParallelFor(torch_loop, torch_thread_count, nullptr)
                                 : retrogradSetParallelFor(nullptr, nullptr, nullptr);
}

}  // namespace

ProcessState& process_state() {
  ProcessState* state = current.load(std::memory_order_acquire);
  if (state != nullptr) return *state;
  static const int registered = pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); });
  static_cast<void>(registered);
  auto* made = new ProcessState;
  if (!current.compare_exchange_strong(state, made)) {  // another thread was first
    delete made;
    return *state;
  }
  if (on_torch_threads.load()) set_loops();
  return *made;
}

const char* loops_on_torch_threads(bool wanted) {
  process_state();  // so that forks are noticed
  on_torch_threads.store(wanted);
  return set_loops() == RETROGRAD_OK ? nullptr : retrogradGetLastError();
}

}  // namespace retrograd_torch

// SPDX-License-Identifier: Apache-2.0
// grad_bias by chunks, at the speed of memory, whatever the sizes, strides and types.
#pragma once

#include <array>

#include "engines/engine.h"

namespace retrograd::engines::cpu {

// How the sums are made and cut: a pure function of the pass, so the order of
// additions never depends on the threads.
struct BiasPlan {
  // A loop over positions (batch and space), outermost first. Neighbours in one
  // line are one axis.
  struct Axis {
    int64_t size = 1;
    int64_t stride = 0;
  };
  std::array<Axis, 4> axes;
  int rank = 0;
  int64_t positions = 1;  // of all axes

  bool by_columns = false;    // all columns of a position lie together, and are
                              // added side by side
  int64_t columns = 1;        // by_columns: sums made side by side: channels, or
                              // channels × a short axis
  int64_t per_channel = 1;    // by_columns: of them that belong to one channel
  int64_t chunk = 1;          // positions in one task
  int64_t chunks = 1;         // of one channel, or of all columns
  int64_t tasks = 1;          // chunks of all sums
  int64_t tasks_at_once = 1;  // for one thread: below that, handing them out
                              // costs more than it gains
  int64_t sums() const { return by_columns ? chunks * columns : tasks; }
};
BiasPlan plan_bias(const problem::BiasPass& pass);

}  // namespace retrograd::engines::cpu

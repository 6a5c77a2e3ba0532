// SPDX-License-Identifier: Apache-2.0
// grad_bias by chunks: long sums over few channels, cut so that all threads have work.
#pragma once

#include "engines/engine.h"

namespace retrograd::engines::cpu {

const Candidate& chunked_bias();

// How the sums are cut: a pure function of the pass, so the order of additions never depends on the threads.
struct BiasChunks {
  int64_t length = 0;  // elements to add for one channel
  int64_t chunk = 0;   // of them, in one task
  int64_t chunks = 0;  // for each channel
};
BiasChunks cut_bias(const problem::BiasPass& pass);

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// Average pooling backward on volumes, row by row: it gathers, it never scatters.
//
//   quotient[p]         = grad_output[p] / (count_d[pd] · count_h[ph] · count_w[pw])
//   expanded[pd, ph, w] = Σ_{pw : w in window pw} quotient[pd, ph, pw]
//   out[d, h, w]        = Σ_{pd,ph : d, h in windows pd, ph} expanded[pd, ph, w]
//
// Along the row first: there are fewer rows of windows than of places, and what is left for the rows of the
// result are whole vectors, one after the other.
//
// With w + pad = j·stride + r and kernel = terms·stride + rest, a place takes the windows j, j−1, …
// j−terms+1, and one more if r < rest. The lanes of a vector take their j from a table of `stride` lines.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/dtype.h"
#include "kernels/cpu/vector_shape.h"

namespace retrograd::kernels::cpu {

// How rows of windows become rows of results.
enum class PoolWay {
  kExpand,  // in general: expanded first, then added
  kCopy,    // a place lies in one window: its quotient goes to all rows of the window at once
  kStream,  // the same where windows fill all rows and those lie side by side: vector after vector
  kSlide,   // windows of 2 or 3 at every place: sums along the row stay in registers from row to row
  kTerms,   // small volumes side by side: vectors of results across rows and volumes, by a list of windows
  // Straight from rows of FLOAT that are divided by one number, places and windows side by side:
  kThrees,  // windows of 3 × 3 at every place
  kWoven,   // windows of 3 × 3 at every other place, with a padding of 1
  kLong     // one row of many windows, one at every place
};

// Of every window along an axis.
struct PoolCounts {
  const float* each = nullptr;  // null: `all`
  float all = 1;
  float operator[](int64_t window) const { return each == nullptr ? all : each[window]; }
};

struct PoolWindows {  // begin to end − 1; none where they are equal
  int64_t begin = 0, end = 0;
  bool operator==(const PoolWindows&) const = default;
};

// Rows of results that are made together: all lie in the same windows, or each in those after the windows of
// the row before. The same comes `repeats` times, `step` rows and one window further on each time.
struct PoolRun {
  int64_t first = 0, rows = 1;
  PoolWindows windows;  // of the first row
  bool slides = false;
  int64_t alone = 0;  // so many rows follow that lie in the second of two windows only
  int64_t repeats = 1, step = 0;
  // Of three windows that slide: the first row lies in two of them only, or the last.
  bool leads = false, trails = false;
};

// Lane l of a vector whose first place has r = this phase: j lies `window` after that of lane 0, and `more`
// has all bits where r < rest.
inline constexpr int64_t kMostPoolPhases = 16;  // greater strides fill runs of places
struct alignas(64) PoolPhase {
  std::array<int32_t, kMostPoolLanes> window;
  std::array<uint32_t, kMostPoolLanes> more;
};

// Results in the order of memory: lane l of a vector is the quotient `lane[l]` from `from` on, and from the
// lane `turn` on from `second`: the next row takes the same windows again. The same comes again after
// `period` vectors, with quotients `advance` further on.
struct alignas(64) PoolStreamVector {
  std::array<int32_t, kMostPoolLanes> lane{};
  int64_t from = 0, second = 0, turn = 0;
};
struct PoolStream {
  const PoolStreamVector* vectors = nullptr;
  int64_t period = 0, advance = 0;
};
// Of rows of `windows` windows, each `stride` places wide and `copies` rows high, in vectors of `lanes`. The
// second fills `period` of them and says how far they advance; 0 where one would take more than two pieces.
int64_t pool_stream_period(int64_t lanes, int64_t windows, int64_t stride, int64_t copies);
int64_t list_pool_stream(int64_t lanes, int64_t windows, int64_t stride, int64_t copies, int64_t period,
                         PoolStreamVector* vectors);

// Small volumes that lie side by side: `volumes` of them are `vectors` vectors of results, and each of those
// is a sum of terms. Lane l of a term is quotient `lanes[l]` − kTaken from `from` on, or zero where that is
// kNone. Windows of a volume count alike, or `divisors` says what each of `divided` windows counts, a whole
// number of vectors and of volumes.
struct PoolTerms {
  static constexpr int32_t kTaken = INT32_MIN, kNone = 0;
  const int32_t* lanes = nullptr;   // of all terms
  const int32_t* from = nullptr;    // of each term
  const int32_t* counts = nullptr;  // terms of each vector
  bool ones = false;                // each has one
  int64_t volumes = 0, vectors = 0;
  const float* divisors = nullptr;
  int64_t divided = 0;
};

struct PoolTensor {
  DType dtype = DType::kF32;
  int64_t volume = 0, depth = 0, row = 0, place = 1;  // strides, in elements
};

struct PoolVolumes {
  int64_t depths = 1, depth_windows = 1;
  const PoolWindows* over_depth = nullptr;
  PoolCounts depth_counts;
  int64_t rows = 1, row_windows = 1;
  const PoolRun* runs = nullptr;
  int64_t run_count = 0;
  PoolCounts row_counts;
  int64_t x = 1, y = 1, kernel = 1, stride = 1, pad = 0;  // along the row
  const PoolPhase* phases = nullptr;                      // for 1 < stride ≤ kMostPoolPhases
  PoolCounts counts;
  int64_t most_rows = 1;  // of windows, that a row of results lies in
  PoolStream stream;      // where results are one
  PoolTerms listed;       // where volumes are small
  bool slides = false;    // windows of 2 or 3, by one place at a time, along rows and from row to row
  int64_t at_once = 1;    // volumes whose rows are expanded before any is finished
  // kThrees, kWoven or kLong where the problem allows it, and the first row of windows that the first row of
  // results lies in, with none left out: it may be negative.
  PoolWay fused = PoolWay::kExpand;
  int64_t first_row = 0;
  PoolTensor in, out;

  // What follows from these, once: 64-bit divisions in every row would cost more than its additions.
  PoolWay way = PoolWay::kExpand;
  int64_t terms = 1, rest = 0;
  int64_t front = 0;  // windows before the first that places ask for: rows of quotients have zeros there
  int64_t pitch = 1;  // windows from one row of quotients to the next, zeros between them
  void derive(const VectorShape& shape);
  bool is_fused() const { return way >= PoolWay::kThrees; }
  int64_t window_rows() const { return at_once * depth_windows * row_windows; }
  // A row of sums by groups, the quotients, and their expanded rows; vectors reach behind each of them.
  int64_t row_floats() const { return front + pitch + 2 * kMostPoolLanes; }
  int64_t quotient_floats() const {
    return front + (window_rows() + listed.volumes * depth_windows * row_windows) * pitch +
           2 * kMostPoolLanes;
  }
  int64_t scratch_floats() const {
    if (is_fused()) return 0;
    const int64_t expanded = way == PoolWay::kExpand ? window_rows() * x + kMostPoolLanes : 0;
    return row_floats() + quotient_floats() + expanded;
  }
};
void list_pool_phases(int64_t stride, int64_t kernel, PoolPhase* phases);

// Zeros where the kernel relies on them: once for any number of calls.
void clear_pool_scratch(const PoolVolumes& volumes, float* scratch);
void pool_volumes(const PoolVolumes& volumes, const std::byte* in, std::byte* out, int64_t count,
                  float* scratch);

// One quotient fills a volume: out[v·size + i] = in[v·in_stride] / divisor.
struct PoolFill {
  DType in_type = DType::kF32, out_type = DType::kF32;
  int64_t in_stride = 1;
  int64_t size = 1;
  float divisor = 1;
};
void pool_fill(const PoolFill& fill, const std::byte* in, std::byte* out, int64_t volumes);

}  // namespace retrograd::kernels::cpu

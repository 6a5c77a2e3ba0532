// SPDX-License-Identifier: Apache-2.0
// A block makes tiles of 64 to 192 rows by 128 to 256 columns of the result of a group, one after the other,
// 64 terms a step, several steps in flight: those of the next tile while it stores one. A thread of the last
// warp asks the copy engine for boxes; warpgroups multiply 64 rows each. Whatever lies outside a tensor or a
// group comes as zeros on both sides, so that no product needs repair. Rows that the engine cannot read are
// loaded by other warps, in pieces. Weights may be cut into parts, runs of steps, which go to the workspace
// as FP32.
#include <algorithm>

#include "kernels/cuda/dense/cluster.cuh"
#include "kernels/cuda/dense/hopper.cuh"
#include "kernels/cuda/dense/pointwise.h"
#include "kernels/cuda/dense/tensor_map.h"
#include "kernels/cuda/dense/wgmma.cuh"
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/launch.cuh"
#include "kernels/cuda/sm90a/result_rows.cuh"

namespace retrograd::kernels::cuda {
namespace {

constexpr int kTerms = kPointwiseTerms, kRow = 128, kWidth = 64;  // bytes and elements of a box's line

// kDown warpgroups of 64 rows each, kBlocks blocks a multiprocessor.
template <int kDown_, int kN_, int kStages_, int kBlocks_>
struct Cut {
  static constexpr int kDown = kDown_, kN = kN_, kStages = kStages_, kBlocks = kBlocks_;
  static constexpr int kM = kDown * kWidth, kThreads = kDown * 128 + 32;
  static constexpr int kABytes = kM * kRow, kStageBytes = kABytes + kN * kRow;
};

struct Block {
  int m0, n0, outer, group;
};
template <class C>
__device__ Block block_of(const PointwiseWalk& p, uint32_t tile) {
  uint32_t m = tile;
  uint32_t n = p.across_m.split(m);
  uint32_t outer = p.across_n.split(n);
  const uint32_t group = p.outer.split(outer);
  return {static_cast<int>(m) * C::kM, static_cast<int>(n) * C::kN, static_cast<int>(outer),
          static_cast<int>(group)};
}

template <Result kResult>
__device__ void steps_of(const PointwiseWalk& p, const Block& block, uint32_t* first, int* count) {
  *first = 0;
  *count = (p.terms + kTerms - 1) / kTerms;
  if constexpr (kResult == Result::kGradWeight) {
    const uint32_t all = p.image_steps.divisor * static_cast<uint32_t>(p.images);
    *first = static_cast<uint32_t>(block.outer) * p.part_steps;
    *count = *first < all ? static_cast<int>(min(p.part_steps, all - *first)) : 0;
  }
}

// Of weights both factors lie along the sum's places; otherwise b lies along the result's places, and a, the
// weights, along x channels: the sum's of forward, the result's of grad_input.
template <Result kResult, class C>
__device__ void load_step(const PointwiseWalk& p, const Block& block, const CUtensorMap* a,
                          const CUtensorMap* b, uint32_t step, uint32_t stage, uint32_t barrier) {
  if constexpr (kResult == Result::kGradWeight) {
    uint32_t at = step;
    const int image = static_cast<int>(p.image_steps.split(at)), place = static_cast<int>(at) * kTerms;
    hopper::load_box(stage, a, barrier, place, block.m0, block.group, image);
    hopper::load_box(stage + C::kABytes, b, barrier, place, block.n0, block.group, image);
  } else {
    const int term = static_cast<int>(step) * kTerms;
    if constexpr (kResult == Result::kForward) {
      hopper::load_box(stage, a, barrier, term, block.m0, block.group, 0);
    } else {
#pragma unroll
      for (int i = 0; i < C::kDown; ++i)
        hopper::load_box(stage + i * kTerms * kRow, a, barrier, block.m0 + i * kWidth, term, block.group, 0);
    }
#pragma unroll
    for (int i = 0; i < C::kN / kWidth; ++i)
      hopper::load_box(stage + C::kABytes + i * kTerms * kRow, b, barrier, block.n0 + i * kWidth, term,
                       block.group, block.outer);
  }
}

template <class E, Result kResult, class C>
__device__ void add_step(uint32_t stage, int warpgroup, float (&sums)[C::kN / 2]) {
  constexpr bool kAAlongSum = kResult == Result::kGradInput, kBAlongSum = kResult != Result::kGradWeight;
  const uint32_t a = stage + warpgroup * kWidth * kRow, b = stage + C::kABytes;
  hopper::fence_sums();
#pragma unroll
  for (int k = 0; k < kTerms; k += 16)
    hopper::multiply<E, C::kN, kAAlongSum, kBAlongSum>(
        sums, kAAlongSum ? hopper::factor(a + k * kRow, 1024) : hopper::factor(a + k * 2),
        kBAlongSum ? hopper::factor(b + k * kRow, kTerms * kRow) : hopper::factor(b + k * 2), true);
  hopper::close_products();
}

struct Target {
  uint16_t* results;  // null: parts
  bool vectors;       // results are aligned
  float* parts;
  ChannelBias bias;
};

template <class C>
__device__ void add_bias(const PointwiseWalk& p, int64_t first, int row0, const Target& target,
                         float (&sums)[C::kN / 2]) {
  if (target.bias.data == nullptr) return;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int m = row0 + half * 8;
    const float bias =
        m < p.rows ? load_any(target.bias.dtype, target.bias.data, (first + m) * target.bias.stride) : 0;
#pragma unroll
    for (int j = 0; j < C::kN / 8; ++j) sums[j * 4 + half * 2] += bias, sums[j * 4 + half * 2 + 1] += bias;
  }
}

template <class E, Result kResult, class C>
__device__ void store(const PointwiseWalk& p, const Block& block, const Target& target, int thread,
                      float (&sums)[C::kN / 2]) {
  const int row0 = block.m0 + thread / 128 * kWidth + thread % 128 / 32 * 16 + thread % 32 / 4;
  const int64_t first = int64_t{block.group} * p.rows;
  if constexpr (kResult == Result::kGradWeight) {
    if (target.results == nullptr) {
      float* const part = target.parts + int64_t{block.outer} * p.groups * p.rows * p.filled;
      return store_rows<C::kN>(sums, [&](int further) {
        const int m = row0 + further;
        return PartRow(part + (first + m) * p.filled + block.n0, m < p.rows ? p.filled - block.n0 : 0);
      });
    }
  }
  if constexpr (kResult != Result::kGradWeight) add_bias<C>(p, first, row0, target, sums);
  const int columns = (kResult == Result::kGradWeight ? p.filled : p.columns) - block.n0;
  uint16_t* const image =
      target.results + (kResult == Result::kGradWeight ? 0 : block.outer * p.image_step) + block.n0;
  const auto row_at = [&](auto vectors) {
    return [&, vectors](int further) {
      const int m = row0 + further;
      return ResultRow<E, decltype(vectors)::value>(image + (first + m) * p.row_step,
                                                    m < p.rows ? columns : 0);
    };
  };
  if (target.vectors)
    store_rows<C::kN>(sums, row_at(std::true_type{}));
  else
    store_rows<C::kN>(sums, row_at(std::false_type{}));
}

// A tile's sums; the next one's first steps may come while this one's results are stored.
template <class E, Result kResult, class C>
__device__ __forceinline__ void sum_steps(int steps, uint32_t base, uint32_t full,
                                          hopper::Ring<C::kStages>& ring, int thread,
                                          float (&sums)[C::kN / 2]) {
  const uint32_t empty = full + 8 * C::kStages;
#pragma unroll
  for (int i = 0; i < C::kN / 2; ++i) sums[i] = 0;
  hopper::hold(sums);  // zeros are written before the loop, not in it, where products would wait for them
  uint32_t last = 0;
#pragma unroll 1
  for (int step = 0; step < steps; ++step, ring.next()) {
    hopper::wait(full + 8 * ring.stage, ring.parity);
    add_step<E, kResult, C>(base + ring.stage * C::kStageBytes, thread / 128, sums);
    hopper::wait_for_products<1>();
    if (step > 0 && thread % 32 == 0) hopper::arrive(empty + 8 * last);
    last = ring.stage;
  }
  hopper::wait_for_products<0>();
  if (steps > 0 && thread % 32 == 0) hopper::arrive(empty + 8 * last);
  hopper::hold(sums);
}

template <class E, Result kResult, class C>
__global__ void __launch_bounds__(C::kThreads, C::kBlocks)
    pointwise_kernel(const __grid_constant__ PointwiseWalk p, const __grid_constant__ CUtensorMap a,
                     const __grid_constant__ CUtensorMap b, const __grid_constant__ Target target) {
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * C::kStages];
  const uint32_t base = (hopper::shared_address(shared) + 1023u) & ~1023u;
  const uint32_t full = hopper::shared_address(barriers), empty = full + 8 * C::kStages;
  if (threadIdx.x == 0) {
    hopper::prefetch_map(&a);
    hopper::prefetch_map(&b);
    hopper::init_ring<C::kStages>(full, empty, 1, 4 * C::kDown);
  }
  __syncthreads();
  hopper::Ring<C::kStages> ring;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread >= C::kDown * 128) {
    if (thread != C::kDown * 128) return;
    for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
      const Block block = block_of<C>(p, tile);
      uint32_t first;
      int steps;
      steps_of<kResult>(p, block, &first, &steps);
      for (int step = 0; step < steps; ++step, ring.next()) {
        const uint32_t barrier = full + 8 * ring.stage;
        hopper::wait(empty + 8 * ring.stage, ring.parity ^ 1);
        hopper::arrive_expecting(barrier, C::kStageBytes);
        load_step<kResult, C>(p, block, &a, &b, first + static_cast<uint32_t>(step),
                              base + ring.stage * C::kStageBytes, barrier);
      }
    }
    return;
  }
#pragma unroll 1
  for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    const Block block = block_of<C>(p, tile);
    uint32_t first;
    int steps;
    steps_of<kResult>(p, block, &first, &steps);
    float sums[C::kN / 2];
    sum_steps<E, kResult, C>(steps, base, full, ring, thread, sums);
    store<E, kResult, C>(p, block, target, thread, sums);
  }
}

template <class E, Result kResult, class C>
bool launch(const PointwisePlan& plan, const Conv& conv, const Target& target, Stream stream) {
  constexpr int kBytes = C::kStages * C::kStageBytes + 1024;
  const MapType type = std::is_same_v<E, __half> ? MapType::kF16 : MapType::kBF16;
  CUtensorMap a, b;
  if constexpr (kResult == Result::kGradWeight) {
    if (!make_map(plane_boxes(conv, false, C::kM), type, conv.y.data, &a) ||
        !make_map(plane_boxes(conv, true, C::kN), type, conv.x.data, &b))
      return false;
  } else {
    constexpr bool kForward = kResult == Result::kForward;
    if (!make_map(weight_boxes(conv, kForward ? C::kM : kTerms), type, conv.w.data, &a) ||
        !make_map(plane_boxes(conv, kForward, kTerms), type, kForward ? conv.x.data : conv.y.data, &b))
      return false;
  }
  const int64_t blocks = std::min(plan.blocks, int64_t{multiprocessors()} * C::kBlocks);
  start(pointwise_kernel<E, kResult, C>, blocks, C::kThreads, kBytes, stream, plan.walk, a, b, target);
  return true;
}

// ---- pieces: rows at any address, through registers of as many threads as multiply

using PieceCut = Cut<2, 128, 6, 1>;
constexpr int kLoaders = 256, kPieceThreads = PieceCut::kThreads - 32 + kLoaders;
constexpr int kPieceShare = PieceCut::kABytes / 16 / kLoaders;  // pieces of a thread, an operand and a step
static_assert(PieceCut::kM == PieceCut::kN);

struct Pieces {
  PieceRows a, b, to;  // to: not of weights
};

// The 16 bytes at an address that is a multiple of 16, as far as they are the tensor's.
__device__ __forceinline__ uint4 load_vector(const uint16_t* from, const PieceRows& rows) {
  if (from >= rows.first && from + kPiece <= rows.end) return __ldg(reinterpret_cast<const uint4*>(from));
  uint4 v{};
#pragma unroll 1
  for (int i = 0; i < kPiece; ++i) {
    const uint32_t element = from + i >= rows.first && from + i < rows.end ? __ldg(from + i) : 0;
    v.x = __funnelshift_r(v.x, v.y, 16), v.y = __funnelshift_r(v.y, v.z, 16);
    v.z = __funnelshift_r(v.z, v.w, 16), v.w = v.w >> 16 | element << 16;
  }
  return v;
}

// A piece as it comes: two vectors, of which `count` elements from `skipped` on are wanted.
struct RawPiece {
  uint4 low, high;
  int skipped, count;

  __device__ __forceinline__ void load(const PieceRows& rows, const PieceRows::Piece& piece) {
    low = high = uint4{};
    skipped = 0;
    count = piece.count;
    if (count == 0) return;
    const uint16_t* const from = rows.first + piece.offset;
    skipped = static_cast<int>(reinterpret_cast<uintptr_t>(from) % 16 / 2);
    low = load_vector(from - skipped, rows);
    if (skipped + count > kPiece) high = load_vector(from - skipped + kPiece, rows);
  }
  __device__ __forceinline__ uint4 wanted() const {
    uint32_t w[8] = {low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
#pragma unroll
    for (int i = 0; i < 6; ++i) w[i] = (skipped & 4) != 0 ? w[i + 2] : w[i];
#pragma unroll
    for (int i = 0; i < 5; ++i) w[i] = (skipped & 2) != 0 ? w[i + 1] : w[i];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      w[i] = __funnelshift_r(w[i], w[i + 1], (skipped & 1) * 16);
      w[i] = count >= 2 * i + 2 ? w[i] : count == 2 * i + 1 ? w[i] & 0xffffu : 0;
    }
    return {w[0], w[1], w[2], w[3]};
  }
};

// A thread's share of an operand's step: 128 rows of 64 terms; or, kAlongSum, 64 terms of 128 results, 64 a
// line.
template <bool kAlongSum>
struct PieceShare {
  static constexpr int kAcross = kAlongSum ? 16 : 8;  // pieces side by side
  RawPiece raw[kPieceShare];

  __device__ __forceinline__ void load(const PieceRows& rows, int group, int row0, int column0, int loader) {
    const auto number = static_cast<uint32_t>(column0 / kPiece + loader % kAcross);
#pragma unroll
    for (int i = 0; i < kPieceShare; ++i)
      raw[i].load(rows, rows.piece(group, row0 + (loader + i * kLoaders) / kAcross, number));
  }
  __device__ __forceinline__ void store(uint32_t to, int loader) const {
    const int piece = loader % kAcross;
#pragma unroll
    for (int i = 0; i < kPieceShare; ++i) {
      const int row = (loader + i * kLoaders) / kAcross;
      const uint32_t at = to + piece / 8 * kTerms * kRow + row * kRow + (piece % 8 ^ row % 8) * 16;
      const uint4 v = raw[i].wanted();
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(at), "r"(v.x), "r"(v.y), "r"(v.z),
                   "r"(v.w)
                   : "memory");
    }
  }
};

// A row of results in pieces, as ResultRow; `first` is the number of the piece in column 0.
template <class E>
class PieceRow {
 public:
  __device__ PieceRow(const PieceRows& rows, int group, int row, int first)
      : rows_(rows), group_(group), row_(row), first_(first) {}
  __device__ void store(int column, const float2 (&pairs)[4]) const {
    uint32_t words[4];
#pragma unroll
    for (int i = 0; i < 4; ++i) words[i] = pack(pairs[i], E{});
    exchange(words);
    const auto number = static_cast<uint32_t>(first_ + column / kPiece) + threadIdx.x % 4;
    const PieceRows::Piece piece = rows_.piece(group_, row_, number);
    if (piece.count == 0) return;
    uint16_t* const to = const_cast<uint16_t*>(rows_.first) + piece.offset;
    const auto address = reinterpret_cast<uintptr_t>(to);
    if (piece.count < kPiece || address % 4 != 0) {
#pragma unroll
      for (int i = 0; i < kPiece; ++i)
        if (i < piece.count) to[i] = static_cast<uint16_t>(words[i / 2] >> i % 2 * 16);
    } else if (address % 16 == 0) {
      *reinterpret_cast<uint4*>(to) = uint4{words[0], words[1], words[2], words[3]};
    } else if (address % 8 == 0) {
      reinterpret_cast<uint2*>(to)[0] = uint2{words[0], words[1]};
      reinterpret_cast<uint2*>(to)[1] = uint2{words[2], words[3]};
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) reinterpret_cast<uint32_t*>(to)[i] = words[i];
    }
  }

 private:
  const PieceRows& rows_;
  int group_, row_, first_;
};

template <class E, Result kResult>
__global__ void __launch_bounds__(kPieceThreads, PieceCut::kBlocks)
    pieces_kernel(const __grid_constant__ PointwiseWalk p, const __grid_constant__ Pieces pieces,
                  const __grid_constant__ Target target) {
  using C = PieceCut;
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ __align__(8) uint64_t barriers[2 * C::kStages];
  const uint32_t base = (hopper::shared_address(shared) + 1023u) & ~1023u;
  const uint32_t full = hopper::shared_address(barriers), empty = full + 8 * C::kStages;
  if (threadIdx.x == 0) hopper::init_ring<C::kStages>(full, empty, kLoaders / 32, 4 * C::kDown);
  __syncthreads();
  hopper::Ring<C::kStages> ring;
  const int thread = static_cast<int>(threadIdx.x);
  const bool loads = thread >= C::kDown * 128;
#pragma unroll 1
  for (uint32_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
    const Block block = block_of<C>(p, tile);
    uint32_t first;
    int steps;
    steps_of<kResult>(p, block, &first, &steps);
    if (loads) {
      const int loader = thread - C::kDown * 128;
#pragma unroll 1
      for (int step = 0; step < steps; ++step, ring.next()) {
        const int term = static_cast<int>(first + static_cast<uint32_t>(step)) * kTerms;
        constexpr bool kAAlongSum = kResult == Result::kGradInput,
                       kBAlongSum = kResult != Result::kGradWeight;
        PieceShare<kAAlongSum> a;
        PieceShare<kBAlongSum> b;
        a.load(pieces.a, block.group, kAAlongSum ? term : block.m0, kAAlongSum ? block.m0 : term, loader);
        b.load(pieces.b, block.group, kBAlongSum ? term : block.n0, kBAlongSum ? block.n0 : term, loader);
        hopper::wait(empty + 8 * ring.stage, ring.parity ^ 1);
        const uint32_t stage = base + ring.stage * C::kStageBytes;
        a.store(stage, loader);
        b.store(stage + C::kABytes, loader);
        hopper::publish_shared();
        __syncwarp();
        if (thread % 32 == 0) hopper::arrive(full + 8 * ring.stage);
      }
      continue;
    }
    float sums[C::kN / 2];
    sum_steps<E, kResult, C>(steps, base, full, ring, thread, sums);
    if constexpr (kResult == Result::kGradWeight) {
      store<E, kResult, C>(p, block, target, thread, sums);
    } else {
      const int row0 = block.m0 + thread / 128 * kWidth + thread % 128 / 32 * 16 + thread % 32 / 4;
      add_bias<C>(p, int64_t{block.group} * p.rows, row0, target, sums);
      store_rows<C::kN>(sums, [&](int further) {
        return PieceRow<E>(pieces.to, block.group, row0 + further, block.n0 / kPiece);
      });
    }
  }
}

template <class E, Result kResult>
bool launch_pieces(const PointwisePlan& plan, const Conv& conv, const Target& target, Stream stream) {
  constexpr int kBytes = PieceCut::kStages * PieceCut::kStageBytes + 1024;
  constexpr bool kWeights = kResult == Result::kGradWeight, kForward = kResult == Result::kForward;
  const Pieces pieces{kWeights ? plane_pieces(conv, false) : weight_pieces(conv),
                      plane_pieces(conv, kWeights || kForward), plane_pieces(conv, !kForward)};
  const int64_t blocks = std::min(plan.blocks, int64_t{multiprocessors()});
  start(pieces_kernel<E, kResult>, blocks, kPieceThreads, kBytes, stream, plan.walk, pieces, target);
  return true;
}

template <class E, Result kResult>
bool launch_cut(const PointwisePlan& plan, const Conv& conv, const Target& target, Stream stream) {
  if (plan.pieces) return launch_pieces<E, kResult>(plan, conv, target, stream);
  if (plan.cut == PointwiseCut::k128x128)
    return launch<E, kResult, Cut<2, 128, 3, 2>>(plan, conv, target, stream);
  if constexpr (kResult == Result::kGradWeight) {
    if (plan.cut == PointwiseCut::k192x192)
      return launch<E, kResult, Cut<3, 192, 4, 1>>(plan, conv, target, stream);
  } else {
    if (plan.cut == PointwiseCut::k64x256)
      return launch<E, kResult, Cut<1, 256, 2, 2>>(plan, conv, target, stream);
    if (plan.cut == PointwiseCut::k192x128)
      return launch<E, kResult, Cut<3, 128, 5, 1>>(plan, conv, target, stream);
  }
  return launch<E, kResult, Cut<2, 256, 4, 1>>(plan, conv, target, stream);
}

}  // namespace

bool pointwise(const PointwisePlan& plan, const Conv& conv, Result result, RowType type, void* filter,
               float* parts, Stream stream) {
  void* to = result == Result::kForward ? conv.y.data : result == Result::kGradInput ? conv.x.data : nullptr;
  if (result == Result::kGradWeight && plan.results != WeightResults::kParts)
    to = plan.results == WeightResults::kInPlace ? conv.w.data : filter;
  const Target target{static_cast<uint16_t*>(to), is_aligned(to), parts, conv.bias};
  return with_half(dtype_of(type), [&](auto element) {
    return with_one_of<Result::kForward, Result::kGradInput, Result::kGradWeight>(
        result, [&](auto of) { return launch_cut<decltype(element), of()>(plan, conv, target, stream); });
  });
}

}  // namespace retrograd::kernels::cuda

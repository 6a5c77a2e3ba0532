// SPDX-License-Identifier: Apache-2.0
// One instruction set only, and one that Highway does not know: intrinsics. The system hands tile registers
// only to processes that ask for them, because they make the state of every thread 8 KiB larger.
#include "kernels/cpu/dense/cell_tiles.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "base/dtype.h"
#include "kernels/cpu/dense/cell_tiles-inl.h"
#include "kernels/cpu/targets.h"
#include "kernels/cpu/vector_shape.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__GNUC__) || defined(__clang__))
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace retrograd::kernels::cpu {
namespace {

// The instructions name their registers in their text: one of these is left in each function.
#define RG_REGISTERS(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
template <CellType kType>
struct AmxRegisters {
  RG_AMX static void configure(const TileConfig& config) {
    asm volatile("" : : "m"(config) : "memory");  // g++ takes the instruction to read eight bytes
    _tile_loadconfig(&config);
  }
  RG_AMX static void release() { _tile_release(); }

  template <int kIndex>
  RG_AMX static inline void zero() {
#define RG_ZERO(i) \
  if constexpr (kIndex == i) _tile_zero(i);
    RG_REGISTERS(RG_ZERO)
#undef RG_ZERO
  }
  template <int kIndex>
  RG_AMX static inline void load(const float* from, int64_t row_bytes) {
#define RG_LOAD(i) \
  if constexpr (kIndex == i) _tile_loadd(i, from, row_bytes);
    RG_REGISTERS(RG_LOAD)
#undef RG_LOAD
  }
  template <int kIndex>
  RG_AMX static inline void store(float* to, int64_t row_bytes) {
#define RG_STORE(i) \
  if constexpr (kIndex == i) _tile_stored(i, to, row_bytes);
    RG_REGISTERS(RG_STORE)
#undef RG_STORE
  }
  template <int kRow, int kColumn>
  RG_AMX static inline void multiply() {
    constexpr bool kBf16 = kType == CellType::kBf16;
    if constexpr (kBf16 && kRow == 0 && kColumn == 0) _tile_dpbf16ps(0, 4, 6);
    if constexpr (kBf16 && kRow == 0 && kColumn == 1) _tile_dpbf16ps(1, 4, 7);
    if constexpr (kBf16 && kRow == 1 && kColumn == 0) _tile_dpbf16ps(2, 5, 6);
    if constexpr (kBf16 && kRow == 1 && kColumn == 1) _tile_dpbf16ps(3, 5, 7);
    // tdpfp16ps tmm6 or tmm7, tmm4 or tmm5, tmm0 to tmm3, which compilers before g++ 13 cannot write.
    if constexpr (!kBf16)
      asm volatile(".byte 0xc4, 0xe2, %c0, 0x5c, %c1" ::"i"(0x4b - 8 * kColumn),
                   "i"(0xc4 + 17 * kRow + 8 * kColumn));
  }
};
#undef RG_REGISTERS

bool processor_has_tiles(CellType type) {
  constexpr unsigned kAmxBf16 = 1U << 22, kAmxTile = 1U << 24, kXsave = 1U << 27, kAmxFp16 = 1U << 21;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & kXsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  const bool bf16 = (d & kAmxBf16) != 0 && (d & kAmxTile) != 0 && __builtin_cpu_supports("avx512bf16") != 0;
  if (type == CellType::kBf16 || !bf16) return bf16;
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a & kAmxFp16) != 0;
}

// Of the system, for all threads of the process, those that are there and those to come.
bool ask_for_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;  // arch_prctl(2): ARCH_REQ_XCOMP_PERM
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

std::atomic<bool> pairs_stand_in{false};

// The product in pieces that bf16_tile_product takes.
void product_of_pairs(TileProduct tile, int upper) {
  const float *a = tile.a[0], *lower = tile.a[1];
  const int rows = tile.rows,
            most = widest_shape().tile_rows(tile.width == 0 ? widest_shape().tile_width() : tile.width);
  for (int row = 0; row < rows; row += tile.rows) {
    const float* first = row < upper ? a + row * tile.a_stride : lower + (row - upper) * tile.a_stride;
    tile.set_rows(first, tile.a_stride, std::min(most, (row < upper ? upper : rows) - row));
    bf16_tile_product(tile);
    tile.c += tile.rows * tile.c_stride;
    if (tile.start != nullptr) tile.start += tile.rows * tile.start_stride;
  }
}

// Rows that begin within a cell are copied, 16 cells at a time: only tile registers read them where they are.
void product_of_shifted_pairs(TileProduct tile, int upper) {
  float cells[kTileRegisterRows][kRegisterCells];
  const TileProduct given = tile;
  const int64_t zero = 0, width = given.width == 0 ? widest_shape().tile_width() : given.width;
  const int64_t b_step = given.b_offsets != nullptr ? given.b_outer_stride : given.inner * width;
  tile.a_stride = kRegisterCells;
  tile.a[0] = cells[0];
  tile.a[1] = cells[upper];
  tile.offsets = tile.b_offsets = &zero;
  tile.inner = 1;
  tile.b_outer_stride = b_step;
  for (int64_t first = 0; first < given.outer; first += kRegisterCells)
    for (int64_t j = 0; j < given.inner; ++j) {
      tile.outer = std::min(kRegisterCells, given.outer - first);
      for (int row = 0; row < given.rows; ++row) {
        const float* from =
            row < upper ? given.a[0] + row * given.a_stride : given.a[1] + (row - upper) * given.a_stride;
        std::memcpy(cells[row], reinterpret_cast<const char*>(from) + (first + given.offsets[j]) * 4,
                    static_cast<size_t>(tile.outer) * sizeof(float));
      }
      tile.b = given.b + first * b_step + (given.b_offsets != nullptr ? given.b_offsets[j] : j * width);
      product_of_pairs(tile, upper);
      tile.accumulate = true;
    }
}

// Cells of FP16 in plain loops.
void product_of_halves(const TileProduct& t, int upper) {
  const int64_t width = t.width == 0 ? widest_shape().tile_width() : t.width;
  const int64_t b_step = t.b_offsets != nullptr ? t.b_outer_stride : t.inner * width;
  const auto product = [](const float* a, const float* b) {
    uint16_t numbers[4];
    std::memcpy(numbers, a, sizeof(float));  // at any number
    std::memcpy(numbers + 2, b, sizeof(float));
    return f16_to_f32(numbers[0]) * f16_to_f32(numbers[2]) + f16_to_f32(numbers[1]) * f16_to_f32(numbers[3]);
  };
  for (int row = 0; row < t.rows; ++row) {
    const float* a = row < upper ? t.a[0] + row * t.a_stride : t.a[1] + (row - upper) * t.a_stride;
    for (int64_t v = 0; v < width; ++v) {
      float& sum = t.c[row * t.c_stride + v];
      if (!t.accumulate) sum = t.start != nullptr ? t.start[row * t.start_stride + v] : 0;
      for (int64_t o = 0; o < t.outer; ++o)
        for (int64_t j = 0; j < t.inner; ++j)
          sum += product(a + o + t.offsets[j],
                         t.b + o * b_step + (t.b_offsets != nullptr ? t.b_offsets[j] : j * width) + v);
    }
  }
}

bool begins_within_a_cell(const float* row) { return reinterpret_cast<uintptr_t>(row) % sizeof(float) != 0; }

}  // namespace

bool let_pairs_stand_in_for_tiles() {
  pairs_stand_in = __builtin_cpu_supports("avx512bf16") != 0;
  return pairs_stand_in;
}

bool machine_has_tiles(CellType type) {
  static const bool bf16 = processor_has_tiles(CellType::kBf16) && ask_for_tiles();
  static const bool f16 = bf16 && processor_has_tiles(CellType::kF16);
  return type == CellType::kBf16 ? bf16 : f16;
}

bool has_tiles(CellType type) {
  const auto has = [](CellType one) {
    return tiles_allowed(one == CellType::kF16) && std::string_view(target_name()).starts_with("AVX3") &&
           (pairs_stand_in || machine_has_tiles(one));
  };
  static const bool bf16 = has(CellType::kBf16), f16 = has(CellType::kF16);
  return type == CellType::kBf16 ? bf16 : f16;
}

CellTiles::~CellTiles() {
  if (configured_.depth != 0) AmxRegisters<CellType::kBf16>::release();
}

void CellTiles::product(const TileProduct& tile, int upper) {
  if (pairs_stand_in) {
    if (type_ == CellType::kF16) return product_of_halves(tile, upper);
    const bool shifted =
        begins_within_a_cell(tile.a[0]) || (tile.rows > upper && begins_within_a_cell(tile.a[1]));
    return shifted ? product_of_shifted_pairs(tile, upper) : product_of_pairs(tile, upper);
  }
  type_ == CellType::kBf16 ? tile_register_product<AmxRegisters<CellType::kBf16>>(tile, upper, configured_)
                           : tile_register_product<AmxRegisters<CellType::kF16>>(tile, upper, configured_);
}
void CellTiles::product(TileProduct& tile) { product(tile, cut_in_two(tile)); }

}  // namespace retrograd::kernels::cpu

#else

namespace retrograd::kernels::cpu {

bool machine_has_tiles(CellType) { return false; }
bool has_tiles(CellType) { return false; }
bool let_pairs_stand_in_for_tiles() { return false; }
CellTiles::~CellTiles() = default;
void CellTiles::product(TileProduct&) { std::abort(); }
void CellTiles::product(const TileProduct&, int) { std::abort(); }

}  // namespace retrograd::kernels::cpu

#endif

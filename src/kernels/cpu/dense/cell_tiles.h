// SPDX-License-Identifier: Apache-2.0
// Products of 16-bit numbers with the tile registers of AMX: sixteen times the products of FP32 for each
// cycle. All processors with tile registers for BF16 have them, some for FP16, too.
//
// The product is that of tile_product.h over cells (cell_pairs.h says what a cell is and what becomes of
// small numbers), for up to 32 rows at equal distances and with an outer stride of 1: a row's cells that are
// summed over lie side by side.
#pragma once

#include <cstdint>

#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/tile_product.h"

namespace retrograd::kernels::cpu {

inline constexpr int kRegisterRows = 16;       // of a tile register
inline constexpr int kTileRegisterRows = 32;   // of a product: two registers
inline constexpr int64_t kRegisterCells = 16;  // that a register holds of a row

// Rows of the next product where `rows` are left: even ones.
inline int64_t next_register_rows(int64_t rows) {
  if (rows >= 2 * kTileRegisterRows) return kTileRegisterRows;
  const int64_t products = (rows + kTileRegisterRows - 1) / kTileRegisterRows;
  return (rows + products - 1) / products;
}

// Whether the processor has the instructions and the system lets this process use them.
bool machine_has_tiles(CellType type);
// The same, and the limit of targets.h allows them. The class below may be used only where it does;
// tile_width() is 32 there.
bool has_tiles(CellType type);

// For tests, before anybody asks: products of pairs, and plain loops over FP16, stand in for tiles that this
// machine has not, so that engines can be run. False where it has no pairs either.
bool let_pairs_stand_in_for_tiles();

// What a tile register holds in a product: `upper` and `lower` rows of sums, `columns` registers of 16 side
// by side, `depth` cells that one instruction adds over.
struct TileShape {
  int upper = 0, lower = 0, columns = 0, depth = 0;
  bool operator==(const TileShape&) const = default;
};

// The tile registers of the calling thread, from the first product on.
class CellTiles {
 public:
  explicit CellTiles(CellType type) : type_(type) {}
  CellTiles(const CellTiles&) = delete;
  CellTiles& operator=(const CellTiles&) = delete;
  ~CellTiles();

  // As bf16_tile_product, of cells of the type: rows a_stride apart from a[0] on; a[1] is set here.
  void product(TileProduct& tile);
  // The same of rows in two runs, each for one register: `upper` of them from a[0] on, the others from a[1].
  // Runs may begin within a cell: at any number.
  void product(const TileProduct& tile, int upper);

 private:
  CellType type_;
  TileShape configured_;
};

}  // namespace retrograd::kernels::cpu

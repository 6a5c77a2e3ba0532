// SPDX-License-Identifier: Apache-2.0
// 1x1 convolutions of planes (NCHW) on Hopper's warpgroup products, FP16 and BF16, read where they lie: a
// plane is a row along its places.
//   forward      y[n, o, p] = Σ_c w[o, c] · x[n, c, p]
//   grad_input   x[n, c, p] = Σ_o w[o, c] · y[n, o, p]
//   grad_weight  w[o, c] = Σ_n Σ_p y[n, o, p] · x[n, c, p]
// How the work is cut, and the products.
#pragma once

#include "kernels/cuda/dense/places_map.h"
#include "kernels/cuda/dense_weight/weight_results.h"
#include "kernels/cuda/fast_div.cuh"
#include "kernels/cuda/layout/channel_rows.h"

namespace retrograd::kernels::cuda {

inline constexpr int kPointwiseTerms = 64;  // of a step

// Rows by columns of a block. The first two have two blocks a multiprocessor: one loads while the other
// stores. The others read the planes fewer times.
enum class PointwiseCut : unsigned char { k64x256, k128x128, k128x256, k192x128, k192x192 };
const char* name_of(PointwiseCut cut);

struct PointwiseWalk {
  int rows, columns;  // of a group's result: channels by places, or y channels by x channels
  int terms;          // of a group and an image
  int groups, images;
  uint32_t tiles;  // of all groups, images and parts
  FastDiv across_m, across_n;
  FastDiv outer;                 // images; of weights: parts
  FastDiv image_steps;           // of weights
  uint32_t part_steps;           // of weights
  int filled;                    // columns of a part
  int64_t row_step, image_step;  // of the result, in elements
};

// Pieces are eight places (of weights: x channels) of a row. Rows that the copy engine cannot read come in
// pieces through registers, from any address; a plane's last piece ends with it, so that no piece has places
// of two images, and the pieces of all images lie side by side.
inline constexpr int kPiece = 8;
struct PieceRows {
  const uint16_t *first, *end;  // of the tensor
  int64_t row, group, image;    // strides
  int rows, length;             // of a group; elements of a row
  FastDiv pieces;               // of a row
  uint32_t all;                 // of a row of all images

  struct Piece {
    int64_t offset;  // of its first element
    int count;       // its elements; 0: there is none
  };
  RG_DEVICE Piece piece(int group_at, int row_at, uint32_t number) const {
    if (row_at >= rows || number >= all) return {0, 0};
    uint32_t at = number;
    const uint32_t image_at = pieces.split(at);
    const int left = length - static_cast<int>(at) * kPiece;
    return {group_at * group + row_at * row + image_at * image + int64_t{at} * kPiece,
            left < kPiece ? left : kPiece};
  }
};
PieceRows plane_pieces(const Conv& conv, bool is_x);
PieceRows weight_pieces(const Conv& conv);

struct PointwisePlan {
  PointwiseCut cut;
  bool pieces;  // instead of boxes; tiles of 128 x 128, images joined
  PointwiseWalk walk;
  int64_t blocks, parts;
  WeightResults results;  // of weights
  double microseconds;    // about how long it takes on an H200, launches aside
};

// Of a 1x1 convolution with a stride of one and no padding of tensors that has_pieces takes. False: more
// blocks than a launch has.
bool plan_pointwise(const Conv& conv, Result result, DType rows, PointwisePlan* plan);

// Places side by side, and channels and images whole vectors apart, so that the copy engine reads boxes.
bool has_boxes(const Tensor& tensor, int64_t batch, int64_t channels, int64_t places);
// Places side by side, and no channel or image twice.
bool has_pieces(const Tensor& tensor, int64_t batch, int64_t channels, int64_t places);
// Of weights [y channel][x channel].
bool has_weight_boxes(const Conv& conv);
bool has_weight_pieces(const Conv& conv);

// rows: those of a box.
BoxMap plane_boxes(const Conv& conv, bool is_x, uint32_t rows);
BoxMap weight_boxes(const Conv& conv, uint32_t rows);

// Whole sums go to the tensor that `result` names, or to `filter` (WeightResults::kFilter); otherwise to
// parts. Operands of boxes are aligned to 16 bytes; needs a Hopper GPU. False: the driver declined, and
// nothing was launched.
bool pointwise(const PointwisePlan& plan, const Conv& conv, Result result, RowType type, void* filter,
               float* parts, Stream stream);

}  // namespace retrograd::kernels::cuda

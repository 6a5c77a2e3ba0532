/* SPDX-License-Identifier: Apache-2.0 */
/* Our own interface from plain C11: its numbers, which never change, and one whole call. */
#include <stdio.h>

#include "retrograd/retrograd.h"

#define SAME(name, value) _Static_assert((name) == (value), #name)

SAME(RETROGRAD_OK, 0);
SAME(RETROGRAD_NULL_ARGUMENT, 1);
SAME(RETROGRAD_INVALID_ARGUMENT, 2);
SAME(RETROGRAD_BAD_SHAPE, 3);
SAME(RETROGRAD_BAD_DTYPE, 4);
SAME(RETROGRAD_BAD_STRIDES, 5);
SAME(RETROGRAD_BAD_WORKSPACE, 6);
SAME(RETROGRAD_BAD_HANDLE, 7);
SAME(RETROGRAD_WRONG_DEVICE, 8);
SAME(RETROGRAD_NO_DEVICE, 9);
SAME(RETROGRAD_OUT_OF_MEMORY, 10);
SAME(RETROGRAD_INTERNAL_ERROR, 11);
SAME(RETROGRAD_F32, 0);
SAME(RETROGRAD_F16, 1);
SAME(RETROGRAD_BF16, 2);
SAME(RETROGRAD_HIF8, 3);
SAME(RETROGRAD_E4M3, 4);
SAME(RETROGRAD_CPU, 0);
SAME(RETROGRAD_CUDA, 1);
SAME(RETROGRAD_CONV_BACKWARD, 0);
SAME(RETROGRAD_CONV_TBC_BACKWARD, 1);
SAME(RETROGRAD_AVG_POOL_BACKWARD, 2);
SAME(RETROGRAD_CONV, 3);
SAME(RETROGRAD_CONV_TBC, 4);
SAME(RETROGRAD_AVG_POOL, 5);
SAME(RETROGRAD_BIAS, 6);
SAME(RETROGRAD_OUTPUT, 7);
SAME(RETROGRAD_MATH_KEEP, 0);
SAME(RETROGRAD_MATH_REDUCED, 1);
SAME(RETROGRAD_MATH_F16, 2);
SAME(RETROGRAD_MATH_HF32, 3);

static int serial_calls;

static void serial_loop(void* context, int64_t pieces, retrogradPiece_t piece, void* piece_context) {
  *(int*)context += 1;
  for (int64_t i = 0; i < pieces; ++i) piece(piece_context, i);
}

static int two_threads(void* context) { return context != NULL ? 2 : 1; }

int main(void) {
  static const int64_t shape[4] = {1, 1, 4, 4}, kernel[4] = {1, 1, 3, 3}, channels[1] = {1}, one[1] = {1};
  float x[16], w[9], dy[16], dx[16] = {0}, dw[9] = {0}, db[1] = {0};
  for (int i = 0; i < 16; ++i) x[i] = dy[i] = 1;
  for (int i = 0; i < 9; ++i) w[i] = 1;
  const retrogradDevice_t cpu = {RETROGRAD_CPU, 0};
  const retrogradTensor_t input = {x, RETROGRAD_F32, 4, shape, NULL, cpu},
                          weight = {w, RETROGRAD_F32, 4, kernel, NULL, cpu},
                          grad_output = {dy, RETROGRAD_F32, 4, shape, NULL, cpu},
                          grad_input = {dx, RETROGRAD_F32, 4, shape, NULL, cpu},
                          grad_weight = {dw, RETROGRAD_F32, 4, kernel, NULL, cpu},
                          grad_bias = {db, RETROGRAD_F32, 1, channels, NULL, cpu};
  retrogradProblem_t problem;
  if (retrogradInitProblem(&problem, sizeof problem, RETROGRAD_CONV_BACKWARD) != RETROGRAD_OK) return 1;
  problem.input = &input;
  problem.weight = &weight;
  problem.grad_output = &grad_output;
  problem.grad_input = &grad_input;
  problem.grad_weight = &grad_weight;
  problem.grad_bias = &grad_bias;
  problem.padding.values = one;
  problem.padding.count = 1;
  if (retrogradSetParallelFor(serial_loop, two_threads, &serial_calls) != RETROGRAD_OK) return 1;
  if (retrogradRun(&problem, NULL) != RETROGRAD_OK) {
    printf("%s\n", retrogradGetLastError());
    return 1;
  }
  if (retrogradSetParallelFor(NULL, NULL, NULL) != RETROGRAD_OK) return 1;
  printf("gradInput %g %g %g, gradWeight %g %g, gradBias %g\n", dx[0], dx[1], dx[5], dw[0], dw[4], db[0]);
  return 0;
}

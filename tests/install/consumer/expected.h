/* SPDX-License-Identifier: Apache-2.0 */
/* The problem all consumers solve: ones everywhere, input 3x3, kernel 2x2, stride 1, no padding, so
 * grad_output 2x2. */
#ifndef CONSUMER_EXPECTED_H
#define CONSUMER_EXPECTED_H

#include <stdio.h>

/* How many windows cover each input element; how many outputs each tap serves; how many outputs there are. */
static const float kGradInput[9] = {1, 2, 1, 2, 4, 2, 1, 2, 1};
static const float kGradWeight[4] = {4, 4, 4, 4};
static const float kGradBias[1] = {4};

/* 0 when they agree; otherwise 1, and a line for each that does not. */
static inline int compare(const char* name, const float* got, const float* expected, int count) {
  int i, wrong = 0;
  for (i = 0; i < count; ++i) {
    if (got[i] != expected[i]) {
      printf("%s[%d] is %g, expected %g\n", name, i, (double)got[i], (double)expected[i]);
      wrong = 1;
    }
  }
  return wrong;
}

#endif

/* SPDX-License-Identifier: Apache-2.0
 * The second name of averagepool_backward.h.
 */
#include "averagepool_backward.h"

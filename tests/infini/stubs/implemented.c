/* SPDX-License-Identifier: Apache-2.0
 * The one operator of the test's library that is no stub.
 */
#include "infinicore.h"

RETROGRAD_API infiniStatus_t infiniopConvBackward(void);
infiniStatus_t infiniopConvBackward(void) { return INFINI_STATUS_SUCCESS; }

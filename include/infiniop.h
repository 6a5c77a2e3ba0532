/* SPDX-License-Identifier: Apache-2.0
 * infiniop: everything. Create a handle, describe the tensors, create the operator's descriptor, then run it
 * as often as wanted.
 */
#ifndef INFINIOP_H
#define INFINIOP_H

#include "infinicore.h"
#include "infiniop/handle.h"
#include "infiniop/operator_descriptor.h"
#include "infiniop/ops/averagepool.h"
#include "infiniop/ops/averagepool_backward.h"
#include "infiniop/ops/conv.h"
#include "infiniop/ops/conv_backward.h"
#include "infiniop/tensor_descriptor.h"

#endif

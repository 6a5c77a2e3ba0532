/* SPDX-License-Identifier: Apache-2.0 */
/* The status codes of operators, under their second name. */
#include "aclnn/opdev/op_errno.h"

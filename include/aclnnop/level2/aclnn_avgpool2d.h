/* SPDX-License-Identifier: Apache-2.0 */
/* The header of the folder above, under its second name. */
#include "aclnnop/aclnn_avgpool2d.h"

/* SPDX-License-Identifier: Apache-2.0 */
/* The acl runtime interface: everything a program needs besides its operators' headers. */
#ifndef RETROGRAD_ACL_ACL_H
#define RETROGRAD_ACL_ACL_H

#include "acl/acl_base.h"
#include "acl/acl_rt.h"

#endif

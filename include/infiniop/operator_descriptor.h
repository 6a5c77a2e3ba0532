/* SPDX-License-Identifier: Apache-2.0
 * What all operator descriptors have: a device.
 */
#ifndef INFINIOP_OPERATOR_DESCRIPTOR_H
#define INFINIOP_OPERATOR_DESCRIPTOR_H

#include "../infinicore.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory behind a descriptor begins with two ints: device type, device number. A descriptor may run many
 * times, also at once on several streams, each run with its own workspace. */
struct InfiniopDescriptor;

RETROGRAD_API infiniStatus_t infiniopGetDescriptorDeviceType(const struct InfiniopDescriptor* desc_ptr,
                                                             infiniDevice_t* device_type);
RETROGRAD_API infiniStatus_t infiniopGetDescriptorDeviceId(const struct InfiniopDescriptor* desc_ptr,
                                                           int* device_id);

#ifdef __cplusplus
}
#endif

#endif

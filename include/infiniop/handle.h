/* SPDX-License-Identifier: Apache-2.0
 * The handle: on which device operators are created.
 */
#ifndef INFINIOP_HANDLE_H
#define INFINIOP_HANDLE_H

#include "../infinicore.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The memory behind a handle begins with two ints: device type, device number. */
struct InfiniopHandle;
typedef struct InfiniopHandle* infiniopHandle_t;

/* infinirtSetDevice, for clients of infiniop alone: this thread's current device. */
RETROGRAD_API infiniStatus_t infiniopSetRuntimeDevice(infiniDevice_t device, int device_id);
/* For this thread's current device (infinirtSetDevice). Any thread may use the handle. */
RETROGRAD_API infiniStatus_t infiniopCreateHandle(infiniopHandle_t* handle_ptr);
/* Descriptors made with the handle stay usable. */
RETROGRAD_API infiniStatus_t infiniopDestroyHandle(infiniopHandle_t handle);

#ifdef __cplusplus
}
#endif

#endif

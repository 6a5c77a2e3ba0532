/* SPDX-License-Identifier: Apache-2.0
 * infinirt: devices, streams, events and memory.
 *
 * Each thread has a current device, (CPU, 0) at first; the calls below mean that one. A null pointer that
 * must not be null gives NULL_POINTER; a dead or foreign stream, event or memory block gives BAD_PARAM.
 */
#ifndef INFINIRT_H
#define INFINIRT_H

#include "infinicore.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On NVIDIA a cudaStream_t. On the CPU an in-order queue with a worker of its own. Null is the device's
 * default stream: on NVIDIA the legacy one, on the CPU every call with it runs to its end before it returns.
 */
typedef void* infinirtStream_t;
typedef void* infinirtEvent_t;

typedef enum RETROGRAD_INT_ENUM {
  INFINIRT_MEMCPY_H2H = 0,
  INFINIRT_MEMCPY_H2D = 1,
  INFINIRT_MEMCPY_D2H = 2,
  INFINIRT_MEMCPY_D2D = 3
} infinirtMemcpyKind_t;

typedef enum RETROGRAD_INT_ENUM {
  INFINIRT_EVENT_COMPLETE = 0, /* also the answer for an event that was never recorded */
  INFINIRT_EVENT_NOT_READY = 1
} infinirtEventStatus_t;

/* Bits, to be combined. */
typedef enum RETROGRAD_INT_ENUM {
  INFINIRT_EVENT_DEFAULT = 0,
  INFINIRT_EVENT_DISABLE_TIMING = 1,
  INFINIRT_EVENT_BLOCKING_SYNC = 2
} infinirtEventFlags_t;

/* Need not be called, may be called often. */
RETROGRAD_API infiniStatus_t infinirtInit(void);

/* Writes nine counts, one for each device type from 0 to 8: clients with an older, shorter list pass no more
 * room. */
RETROGRAD_API infiniStatus_t infinirtGetAllDeviceCount(int* count_array);
RETROGRAD_API infiniStatus_t infinirtGetDeviceCount(infiniDevice_t device, int* count);
RETROGRAD_API infiniStatus_t infinirtSetDevice(infiniDevice_t device, int device_id);
RETROGRAD_API infiniStatus_t infinirtGetDevice(infiniDevice_t* device_ptr, int* device_id_ptr);
/* Waits for all streams of the current device. */
RETROGRAD_API infiniStatus_t infinirtDeviceSynchronize(void);
RETROGRAD_API infiniStatus_t infinirtGetMemInfo(infiniDevice_t device, int device_id, size_t* free_mem,
                                                size_t* total_mem);

RETROGRAD_API infiniStatus_t infinirtStreamCreate(infinirtStream_t* stream_ptr);
/* Finishes what was put on the stream first. */
RETROGRAD_API infiniStatus_t infinirtStreamDestroy(infinirtStream_t stream);
RETROGRAD_API infiniStatus_t infinirtStreamSynchronize(infinirtStream_t stream);
RETROGRAD_API infiniStatus_t infinirtStreamWaitEvent(infinirtStream_t stream, infinirtEvent_t event);

RETROGRAD_API infiniStatus_t infinirtEventCreate(infinirtEvent_t* event_ptr);
RETROGRAD_API infiniStatus_t infinirtEventCreateWithFlags(infinirtEvent_t* event_ptr, uint32_t flags);
RETROGRAD_API infiniStatus_t infinirtEventRecord(infinirtEvent_t event, infinirtStream_t stream);
RETROGRAD_API infiniStatus_t infinirtEventQuery(infinirtEvent_t event, infinirtEventStatus_t* status_ptr);
RETROGRAD_API infiniStatus_t infinirtEventSynchronize(infinirtEvent_t event);
RETROGRAD_API infiniStatus_t infinirtEventDestroy(infinirtEvent_t event);
/* Both events recorded, complete, and made with timing; otherwise BAD_PARAM. */
RETROGRAD_API infiniStatus_t infinirtEventElapsedTime(float* ms_ptr, infinirtEvent_t start,
                                                      infinirtEvent_t end);

/* Blocks start at multiples of 64 bytes. Size 0 succeeds and gives a null pointer, and freeing null succeeds.
 */
RETROGRAD_API infiniStatus_t infinirtMalloc(void** p_ptr, size_t size);
RETROGRAD_API infiniStatus_t infinirtMallocHost(void** p_ptr, size_t size);
/* Waits for the streams of the block's device first: work under way may still use the block. */
RETROGRAD_API infiniStatus_t infinirtFree(void* ptr);
RETROGRAD_API infiniStatus_t infinirtFreeHost(void* ptr);
/* The block may be used as soon as the call returns. */
RETROGRAD_API infiniStatus_t infinirtMallocAsync(void** p_ptr, size_t size, infinirtStream_t stream);
/* Frees when everything put on the stream before is done. */
RETROGRAD_API infiniStatus_t infinirtFreeAsync(void* ptr, infinirtStream_t stream);

/* A size of 0 copies nothing, whatever the addresses. A block of ours is never left: BAD_PARAM, nothing
 * copied. */
RETROGRAD_API infiniStatus_t infinirtMemcpy(void* dst, const void* src, size_t size,
                                            infinirtMemcpyKind_t kind);
RETROGRAD_API infiniStatus_t infinirtMemcpyAsync(void* dst, const void* src, size_t size,
                                                 infinirtMemcpyKind_t kind, infinirtStream_t stream);
/* Sets bytes. */
RETROGRAD_API infiniStatus_t infinirtMemset(void* ptr, int value, size_t size);
RETROGRAD_API infiniStatus_t infinirtMemsetAsync(void* ptr, int value, size_t size, infinirtStream_t stream);

#ifdef __cplusplus
}
#endif

#endif

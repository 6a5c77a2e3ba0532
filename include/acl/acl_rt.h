/* SPDX-License-Identifier: Apache-2.0 */
/* The acl runtime: initialisation, devices, contexts, streams, events, memory. */
#ifndef RETROGRAD_ACL_ACL_RT_H
#define RETROGRAD_ACL_ACL_RT_H

#include "acl/acl_base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Flags of aclrtCreateEventWithFlag; without ACL_EVENT_TIME_LINE among them the event cannot be timed. */
#define ACL_EVENT_SYNC 0x00000001U
#define ACL_EVENT_CAPTURE_STREAM_PROGRESS 0x00000002U
#define ACL_EVENT_TIME_LINE 0x00000008U
/* Flags of aclrtCreateStreamWithConfig: hints, taken and not needed. */
#define ACL_STREAM_FAST_LAUNCH 0x00000001U
#define ACL_STREAM_FAST_SYNC 0x00000002U

typedef enum aclrtRunMode RETROGRAD_ACL_INT {
  ACL_DEVICE = 0,
  ACL_HOST = 1,
} aclrtRunMode;

typedef enum aclrtEventStatus RETROGRAD_ACL_INT {
  ACL_EVENT_STATUS_COMPLETE = 0,
  ACL_EVENT_STATUS_NOT_READY = 1,
} aclrtEventStatus;

typedef enum aclrtEventRecordedStatus RETROGRAD_ACL_INT {
  ACL_EVENT_RECORDED_STATUS_NOT_READY = 0,
  ACL_EVENT_RECORDED_STATUS_COMPLETE = 1,
} aclrtEventRecordedStatus;

typedef enum aclrtStreamStatus RETROGRAD_ACL_INT {
  ACL_STREAM_STATUS_COMPLETE = 0,
  ACL_STREAM_STATUS_NOT_READY = 1,
} aclrtStreamStatus;

typedef enum aclrtMemcpyKind RETROGRAD_ACL_INT {
  ACL_MEMCPY_HOST_TO_HOST = 0,
  ACL_MEMCPY_HOST_TO_DEVICE = 1,
  ACL_MEMCPY_DEVICE_TO_HOST = 2,
  ACL_MEMCPY_DEVICE_TO_DEVICE = 3,
  ACL_MEMCPY_DEFAULT = 4,
} aclrtMemcpyKind;

typedef enum aclrtMemMallocPolicy RETROGRAD_ACL_INT {
  ACL_MEM_MALLOC_HUGE_FIRST = 0,
  ACL_MEM_MALLOC_HUGE_ONLY = 1,
  ACL_MEM_MALLOC_NORMAL_ONLY = 2,
  ACL_MEM_MALLOC_HUGE_FIRST_P2P = 3,
  ACL_MEM_MALLOC_HUGE_ONLY_P2P = 4,
  ACL_MEM_MALLOC_NORMAL_ONLY_P2P = 5,
} aclrtMemMallocPolicy;

typedef enum aclrtMemAttr RETROGRAD_ACL_INT {
  ACL_DDR_MEM = 0,
  ACL_HBM_MEM = 1,
  ACL_DDR_MEM_HUGE = 2,
  ACL_DDR_MEM_NORMAL = 3,
  ACL_HBM_MEM_HUGE = 4,
  ACL_HBM_MEM_NORMAL = 5,
  ACL_DDR_MEM_P2P_HUGE = 6,
  ACL_DDR_MEM_P2P_NORMAL = 7,
  ACL_HBM_MEM_P2P_HUGE = 8,
  ACL_HBM_MEM_P2P_NORMAL = 9,
} aclrtMemAttr;

typedef enum aclrtFloatOverflowMode {
  ACL_RT_OVERFLOW_MODE_SATURATION = 0,
  ACL_RT_OVERFLOW_MODE_INFNAN = 1,
  ACL_RT_OVERFLOW_MODE_UNDEF = 2,
} aclrtFloatOverflowMode;

/* configPath: a file with a JSON object, of which the keys "RETROGRAD_DEVICE" (cpu, cuda or auto) and "rules"
 * (a2, a3, 910_95 or training: the product whose limits operators keep) count; or null. */
RETROGRAD_API aclError aclInit(const char* configPath);
/* Also destroys every stream, event, context and memory block that is still alive. Calls of other threads
 * that have begun come to their end first; those that begin meanwhile are refused. */
RETROGRAD_API aclError aclFinalize(void);
/* The text of this thread's last failure, then forgotten; null when nothing is pending. */
RETROGRAD_API const char* aclGetRecentErrMsg(void);
/* These three answer before aclInit, too. The version is that of the acl interface, 1.0.0. */
RETROGRAD_API const char* aclrtGetSocName(void);
RETROGRAD_API aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion);
RETROGRAD_API aclError aclrtGetDeviceCount(uint32_t* count);

/* Each set counts; the device's default context dies with the reset that answers the last one. */
RETROGRAD_API aclError aclrtSetDevice(int32_t deviceId);
RETROGRAD_API aclError aclrtResetDevice(int32_t deviceId);
RETROGRAD_API aclError aclrtResetDeviceForce(int32_t deviceId);
RETROGRAD_API aclError aclrtGetDevice(int32_t* deviceId);
RETROGRAD_API aclError aclrtGetRunMode(aclrtRunMode* runMode);
RETROGRAD_API aclError aclrtSynchronizeDevice(void);
/* active: whether aclrtSetDevice has made the device's default context; flags: 0. */
RETROGRAD_API aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active);
/* Judged and forgotten: results overflow to infinities, and nothing is timed out. */
RETROGRAD_API aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode);
RETROGRAD_API aclError aclrtSetOpExecuteTimeOut(uint32_t timeout);
RETROGRAD_API aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total);

RETROGRAD_API aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId);
RETROGRAD_API aclError aclrtDestroyContext(aclrtContext context);
RETROGRAD_API aclError aclrtSetCurrentContext(aclrtContext context);
RETROGRAD_API aclError aclrtGetCurrentContext(aclrtContext* context);

/* Switches of the current context, and of the process. */
RETROGRAD_API aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value);
RETROGRAD_API aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value);
RETROGRAD_API aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value);
RETROGRAD_API aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value);

/* Streams belong to the context that is current when they are made. A null stream is that context's default
 * one. */
RETROGRAD_API aclError aclrtCreateStream(aclrtStream* stream);
RETROGRAD_API aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t priority, uint32_t flag);
/* Finishes what is pending. */
RETROGRAD_API aclError aclrtDestroyStream(aclrtStream stream);
/* Drops what has not started. */
RETROGRAD_API aclError aclrtDestroyStreamForce(aclrtStream stream);
RETROGRAD_API aclError aclrtSynchronizeStream(aclrtStream stream);
/* timeout in milliseconds; -1 waits for ever. */
RETROGRAD_API aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout);
RETROGRAD_API aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status);
RETROGRAD_API aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event);

RETROGRAD_API aclError aclrtCreateEvent(aclrtEvent* event);
RETROGRAD_API aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag);
RETROGRAD_API aclError aclrtDestroyEvent(aclrtEvent event);
RETROGRAD_API aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream);
/* Back to never recorded, at once. */
RETROGRAD_API aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream);
RETROGRAD_API aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status);
RETROGRAD_API aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status);
RETROGRAD_API aclError aclrtSynchronizeEvent(aclrtEvent event);
RETROGRAD_API aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent);

RETROGRAD_API aclError aclrtMalloc(void** devPtr, size_t size, aclrtMemMallocPolicy policy);
RETROGRAD_API aclError aclrtFree(void* devPtr);
RETROGRAD_API aclError aclrtMallocHost(void** hostPtr, size_t size);
RETROGRAD_API aclError aclrtFreeHost(void* hostPtr);
RETROGRAD_API aclError aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count,
                                   aclrtMemcpyKind kind);
RETROGRAD_API aclError aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count,
                                        aclrtMemcpyKind kind, aclrtStream stream);
RETROGRAD_API aclError aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count);
RETROGRAD_API aclError aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count,
                                        aclrtStream stream);

#ifdef __cplusplus
}
#endif

#endif

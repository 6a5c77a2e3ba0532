// SPDX-License-Identifier: Apache-2.0
// What both kinds of compilers read: functions for the GPU, too, where the compiler knows it.
#pragma once

#ifdef __CUDACC__
#define RG_HOST_DEVICE __host__ __device__
#define RG_DEVICE __device__    // a kernel's own code, which tests run on the CPU
#define RG_CALLED __noinline__  // long, and needed in several places of a kernel
#define RG_PRAGMA(text) _Pragma(#text)
#define RG_UNROLL _Pragma("unroll")
#define RG_UNROLL_BY(count) RG_PRAGMA(unroll count)
#else
#define RG_HOST_DEVICE
#define RG_DEVICE
#define RG_CALLED
#define RG_UNROLL
#define RG_UNROLL_BY(count)
#endif

// SPDX-License-Identifier: Apache-2.0
// What both kinds of compilers read: functions for the GPU, too, where the compiler knows it.
#pragma once

#ifdef __CUDACC__
#define RG_HOST_DEVICE __host__ __device__
#else
#define RG_HOST_DEVICE
#endif

// SPDX-License-Identifier: Apache-2.0
// Which sanitizer this is compiled with: g++ and clang say it in different ways.
#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define RG_ADDRESS_SANITIZER 1
#elif defined(__SANITIZE_THREAD__)
#define RG_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RG_ADDRESS_SANITIZER 1
#elif __has_feature(thread_sanitizer)
#define RG_THREAD_SANITIZER 1
#endif
#endif

#if defined(RG_ADDRESS_SANITIZER) || defined(RG_THREAD_SANITIZER)
#define RG_SANITIZER 1
#endif

/* SPDX-License-Identifier: Apache-2.0
 * What every public header of ours needs: default visibility for its functions, and enumerations that are
 * int.
 */
#ifndef RETROGRAD_EXPORT_H
#define RETROGRAD_EXPORT_H

#if defined(__GNUC__)
#define RETROGRAD_API __attribute__((visibility("default")))
#else
#define RETROGRAD_API
#endif

/* typedef enum RETROGRAD_INT_ENUM { … } name;
 * A fixed type makes every int a legal value in C++ too: callers from C and Python pass what they like, and
 * we must be able to look at it. */
#ifdef __cplusplus
#define RETROGRAD_INT_ENUM : int
#else
#define RETROGRAD_INT_ENUM
#endif

#endif

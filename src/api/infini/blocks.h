// SPDX-License-Identifier: Apache-2.0
// Memory blocks of infinirt: handed out, taken back at once or in stream order, copied within their bounds.
#pragma once

#include <cstddef>

#include "api/infini/guard.h"
#include "runtime/memory.h"

namespace retrograd::api::infini {

// Of the calling thread's current device. 0 bytes give null.
Status allocate_block(void** out, size_t bytes, runtime::MemorySpace space);
// Waits for the device's streams, then frees. Null succeeds.
Status free_block(void* address, runtime::MemorySpace space);
// Frees when `stream` gets there. Until then the block cannot be freed a second time.
Status free_block_later(void* address, runtime::Stream& stream);

// Whether `bytes` can be touched at `address`; `argument` names it in the message.
Status check_bytes(const void* address, size_t bytes, const char* argument);

}  // namespace retrograd::api::infini

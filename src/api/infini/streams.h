// SPDX-License-Identifier: Apache-2.0
// infinirt's live streams and events, found by the handles clients hold.
#pragma once

#include <memory>

#include "api/infini/guard.h"
#include "base/handle_table.h"
#include "infinirt.h"
#include "runtime/device.h"

namespace retrograd::api::infini {

HandleTable<runtime::Stream>& streams();
HandleTable<runtime::Event>& events();

// The handle of a new stream: on a GPU its cudaStream_t, which clients hand to CUDA calls of their own.
infinirtStream_t publish_stream(std::shared_ptr<runtime::Stream> stream);

// A null handle is the null stream of `device`.
Result<std::shared_ptr<runtime::Stream>> find_stream(infinirtStream_t handle, runtime::Device& device);
// The event behind `handle`. `argument` is its name in the message.
Result<std::shared_ptr<runtime::Event>> find_event(infinirtEvent_t handle, const char* argument);

}  // namespace retrograd::api::infini

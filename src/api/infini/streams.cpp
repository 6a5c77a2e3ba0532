// SPDX-License-Identifier: Apache-2.0
// The tables of streams and events. They are never destroyed: clients may destroy streams in static
// destructors.
#include "api/infini/streams.h"

#include "base/per_process.h"

namespace retrograd::api::infini {

HandleTable<runtime::Stream>& streams() {
  static constinit PerProcess<HandleTable<runtime::Stream>> table;
  return table.get();
}

HandleTable<runtime::Event>& events() {
  static constinit PerProcess<HandleTable<runtime::Event>> table;
  return table.get();
}

infinirtStream_t publish_stream(std::shared_ptr<runtime::Stream> stream) {
  void* const native = stream->native_handle();
  if (native == nullptr) return streams().insert(std::move(stream));
  streams().insert_at(native, std::move(stream));
  return native;
}

Result<std::shared_ptr<runtime::Stream>> find_stream(infinirtStream_t handle, runtime::Device& device) {
  if (handle == nullptr) return device.null_stream();
  if (auto stream = streams().find(handle)) return stream;
  // A GPU's stream may be the caller's own cudaStream_t. Numbers we minted are no addresses, so a dead stream
  // of the CPU is not taken for one.
  if (!is_minted_handle(handle))
    if (auto stream = device.adopt_stream(handle)) return stream;
  return Status(Code::kBadHandle, "stream is {}, expected null or a live stream of infinirtStreamCreate{}",
                handle, fork_note());
}

Result<std::shared_ptr<runtime::Event>> find_event(infinirtEvent_t handle, const char* argument) {
  if (handle == nullptr) return null_pointer(argument);
  if (auto event = events().find(handle)) return event;
  return Status(Code::kBadHandle, "{} is {}, expected a live event of infinirtEventCreate{}", argument,
                handle, fork_note());
}

}  // namespace retrograd::api::infini

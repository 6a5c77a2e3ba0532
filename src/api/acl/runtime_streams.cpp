// SPDX-License-Identifier: Apache-2.0
// Streams and events of the acl runtime: making, finding and ending them.

#include "api/acl/objects.h"
#include "api/acl/runtime_state.h"

namespace retrograd::api::acl {

Result<aclrtStream> RuntimeState::create_stream() {
  // Under the lock, so that a context cannot die between being found and being given one more stream.
  std::lock_guard lock(mutex_);
  RG_TRY(const aclrtContext handle, current_context_handle());
  RG_TRY(const auto context, current_context());
  RG_TRY(auto stream, context->device().create_stream());
  return streams_.insert(std::make_shared<StreamEntry>(StreamEntry{std::move(stream), handle}));
}

Result<std::shared_ptr<runtime::Stream>> RuntimeState::stream(aclrtStream stream) const {
  if (stream == nullptr) {
    RG_TRY(const auto context, current_context());
    return context->default_stream();
  }
  const auto entry = streams_.find(stream);
  if (entry == nullptr) return dead_handle("stream", stream, "aclrtStream");
  RG_TRY(const aclrtContext current, current_context_handle());
  if (entry->context != current)
    return Status(Code::kWrongDevice,
                  "stream is {}, which belongs to context {}, expected a stream of the "
                  "current context {}",
                  stream, entry->context, current);
  return entry->stream;
}

Status RuntimeState::destroy_stream(aclrtStream stream, bool drop_pending) {
  RG_CHECK(not_null(stream, "stream"));
  RG_TRY(const auto found, this->stream(stream));
  // Two threads may be destroying it: the one that takes it out of the table goes on.
  if (streams_.remove(stream) == nullptr) return dead_handle("stream", stream, "aclrtStream");
  if (drop_pending) found->abandon();
  return found->synchronize();
}

Status RuntimeState::synchronise_device() {
  RG_TRY(const auto context, current_context());
  return context->device().synchronize();
}

Result<std::shared_ptr<runtime::Stream>> RuntimeState::operator_stream(aclrtStream stream) const {
  if (!initialised_) return Status(Code::kNoDevice, not_initialised());
  if (stream == nullptr) return this->stream(nullptr);
  const auto entry = streams_.find(stream);
  if (entry == nullptr)
    return Status(Code::kWrongDevice, dead_handle("stream", stream, "aclrtStream").message());
  return entry->stream;
}

Result<std::shared_ptr<runtime::Event>> RuntimeState::event(aclrtEvent event, const char* name) const {
  RG_CHECK(not_null(event, name));
  auto found = events_.find(event);
  if (found == nullptr) return dead_handle(name, event, "aclrtEvent");
  return found;
}

}  // namespace retrograd::api::acl

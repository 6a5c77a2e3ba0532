// SPDX-License-Identifier: Apache-2.0
// infinirt: streams and events.

#include "api/infini/devices.h"
#include "api/infini/guard.h"
#include "api/infini/streams.h"
#include "base/per_process.h"
#include "infinirt.h"

using namespace retrograd;
using namespace retrograd::api::infini;

namespace {

Status create_event(infinirtEvent_t* event_ptr, uint32_t flags) {
  constexpr uint32_t kKnown = INFINIRT_EVENT_DISABLE_TIMING | INFINIRT_EVENT_BLOCKING_SYNC;
  if (event_ptr == nullptr) return null_pointer("event_ptr");
  if ((flags & ~kKnown) != 0)
    return Status(Code::kInvalidArgument,
                  "flags is {}, expected a combination of DISABLE_TIMING (1) and BLOCKING_SYNC (2)", flags);
  RG_TRY(auto event, current_device().create_event((flags & INFINIRT_EVENT_DISABLE_TIMING) == 0));
  *event_ptr = events().insert(std::move(event));
  return Status::ok();
}

}  // namespace

infiniStatus_t infinirtStreamCreate(infinirtStream_t* stream_ptr) {
  return guard(__func__, [&]() -> Status {
    if (stream_ptr == nullptr) return null_pointer("stream_ptr");
    RG_TRY(auto stream, current_device().create_stream());
    *stream_ptr = publish_stream(std::move(stream));
    return Status::ok();
  });
}

infiniStatus_t infinirtStreamDestroy(infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    const auto removed = streams().remove(stream);
    if (removed != nullptr) return removed->synchronize();
    return Status(Code::kBadHandle, "stream is {}, expected a live stream of infinirtStreamCreate{}", stream,
                  fork_note());
  });
}

infiniStatus_t infinirtStreamSynchronize(infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    return queue->synchronize();
  });
}

infiniStatus_t infinirtStreamWaitEvent(infinirtStream_t stream, infinirtEvent_t event) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    RG_TRY(auto point, find_event(event, "event"));
    return queue->wait(std::move(point));
  });
}

infiniStatus_t infinirtEventCreate(infinirtEvent_t* event_ptr) {
  return guard(__func__, [&] { return create_event(event_ptr, INFINIRT_EVENT_DEFAULT); });
}

infiniStatus_t infinirtEventCreateWithFlags(infinirtEvent_t* event_ptr, uint32_t flags) {
  return guard(__func__, [&] { return create_event(event_ptr, flags); });
}

infiniStatus_t infinirtEventRecord(infinirtEvent_t event, infinirtStream_t stream) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(auto point, find_event(event, "event"));
    RG_TRY(const auto queue, find_stream(stream, current_device()));
    return queue->record(std::move(point));
  });
}

infiniStatus_t infinirtEventQuery(infinirtEvent_t event, infinirtEventStatus_t* status_ptr) {
  return guard(__func__, [&]() -> Status {
    if (status_ptr == nullptr) return null_pointer("status_ptr");
    RG_TRY(auto point, find_event(event, "event"));
    const bool pending = point->state() == runtime::EventState::kPending;
    *status_ptr = pending ? INFINIRT_EVENT_NOT_READY : INFINIRT_EVENT_COMPLETE;
    return Status::ok();
  });
}

infiniStatus_t infinirtEventSynchronize(infinirtEvent_t event) {
  return guard(__func__, [&]() -> Status {
    RG_TRY(auto point, find_event(event, "event"));
    return point->synchronize();
  });
}

infiniStatus_t infinirtEventDestroy(infinirtEvent_t event) {
  return guard(__func__, [&]() -> Status {
    // Two threads may be destroying it: the one that takes it out of the table goes on.
    if (event != nullptr && events().remove(event) != nullptr) return Status::ok();
    return find_event(event, "event").status();
  });
}

infiniStatus_t infinirtEventElapsedTime(float* ms_ptr, infinirtEvent_t start, infinirtEvent_t end) {
  return guard(__func__, [&]() -> Status {
    if (ms_ptr == nullptr) return null_pointer("ms_ptr");
    RG_TRY(const auto from, find_event(start, "start"));
    RG_TRY(const auto to, find_event(end, "end"));
    RG_TRY(*ms_ptr, to->elapsed_since(*from));
    return Status::ok();
  });
}

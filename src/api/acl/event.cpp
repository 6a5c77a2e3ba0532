// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on events.
#include "acl/acl_rt.h"
#include "api/acl/guard.h"
#include "api/acl/objects.h"
#include "api/acl/runtime_state.h"

using namespace retrograd;
using namespace retrograd::api::acl;
using runtime::EventState;

namespace {

Outcome create(aclrtEvent* event, bool timing) {
  RG_CHECK(not_null(event, "event"));
  RG_TRY(const auto context, RuntimeState::instance().current_context());
  RG_TRY(auto made, context->device().create_event(timing));
  *event = RuntimeState::instance().events().insert(std::move(made));
  return Status::ok();
}

}  // namespace

aclError aclrtCreateEvent(aclrtEvent* event) {
  return guard_runtime(__func__, [&] { return create(event, /*timing=*/true); });
}

aclError aclrtCreateEventWithFlag(aclrtEvent* event, uint32_t flag) {
  return guard_runtime(__func__, [&] { return create(event, (flag & ACL_EVENT_TIME_LINE) != 0); });
}

aclError aclrtDestroyEvent(aclrtEvent event) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(event, "event"));
    if (RuntimeState::instance().events().remove(event) != nullptr) return Status::ok();
    return dead_handle("event", event, "aclrtEvent");
  });
}

aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_TRY(auto recorded, RuntimeState::instance().event(event, "event"));
    RG_TRY(const auto recording, RuntimeState::instance().stream(stream));
    return recording->record(std::move(recorded));
  });
}

aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_TRY(const auto found, RuntimeState::instance().event(event, "event"));
    RG_CHECK(RuntimeState::instance().stream(stream).status());
    found->reset();
    return Status::ok();
  });
}

aclError aclrtQueryEventStatus(aclrtEvent event, aclrtEventRecordedStatus* status) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(status, "status"));
    RG_TRY(const auto found, RuntimeState::instance().event(event, "event"));
    const bool complete = found->state() == EventState::kComplete;
    *status = complete ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return Status::ok();
  });
}

aclError aclrtQueryEvent(aclrtEvent event, aclrtEventStatus* status) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(status, "status"));
    RG_TRY(const auto found, RuntimeState::instance().event(event, "event"));
    const bool complete = found->state() == EventState::kComplete;
    *status = complete ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return Status::ok();
  });
}

aclError aclrtSynchronizeEvent(aclrtEvent event) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_TRY(const auto found, RuntimeState::instance().event(event, "event"));
    return found->synchronize();
  });
}

aclError aclrtEventElapsedTime(float* ms, aclrtEvent startEvent, aclrtEvent endEvent) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(ms, "ms"));
    RG_TRY(const auto start, RuntimeState::instance().event(startEvent, "startEvent"));
    RG_TRY(const auto end, RuntimeState::instance().event(endEvent, "endEvent"));
    RG_TRY(*ms, end->elapsed_since(*start));
    return Status::ok();
  });
}

// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on streams.

#include <chrono>

#include "acl/acl_rt.h"
#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"

using namespace retrograd;
using namespace retrograd::api::acl;

namespace {

Outcome create(aclrtStream* stream) {
  RG_CHECK(not_null(stream, "stream"));
  RG_TRY(*stream, RuntimeState::instance().create_stream());
  return Status::ok();
}

}  // namespace

aclError aclrtCreateStream(aclrtStream* stream) {
  return guard_runtime(__func__, [&] { return create(stream); });
}

aclError aclrtCreateStreamWithConfig(aclrtStream* stream, uint32_t /*priority*/, uint32_t /*flag*/) {
  return guard_runtime(__func__, [&] { return create(stream); });
}

aclError aclrtDestroyStream(aclrtStream stream) {
  return guard_runtime(__func__,
                       [&]() -> Outcome { return RuntimeState::instance().destroy_stream(stream, false); });
}

aclError aclrtDestroyStreamForce(aclrtStream stream) {
  return guard_runtime(__func__,
                       [&]() -> Outcome { return RuntimeState::instance().destroy_stream(stream, true); });
}

aclError aclrtSynchronizeStream(aclrtStream stream) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_TRY(const auto found, RuntimeState::instance().stream(stream));
    return found->synchronize();
  });
}

aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (timeout < -1)
      return Status(Code::kInvalidArgument, "timeout is {}, expected milliseconds, or -1 to wait for ever",
                    timeout);
    RG_TRY(const auto found, RuntimeState::instance().stream(stream));
    if (timeout == -1) return found->synchronize();
    return found->synchronize(std::chrono::milliseconds(timeout));
  });
}

aclError aclrtStreamQuery(aclrtStream stream, aclrtStreamStatus* status) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(status, "status"));
    RG_TRY(const auto found, RuntimeState::instance().stream(stream));
    *status = found->idle() ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return Status::ok();
  });
}

aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_TRY(auto awaited, RuntimeState::instance().event(event, "event"));
    RG_TRY(const auto waiting, RuntimeState::instance().stream(stream));
    return waiting->wait(std::move(awaited));
  });
}

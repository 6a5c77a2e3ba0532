// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on devices.

#include "acl/acl_rt.h"
#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"

using namespace retrograd;
using namespace retrograd::api::acl;

aclError aclrtSetDevice(int32_t deviceId) {
  return guard_runtime(__func__, [&] { return RuntimeState::instance().set_device(deviceId); });
}

aclError aclrtResetDevice(int32_t deviceId) {
  return guard_runtime(__func__, [&] { return RuntimeState::instance().reset_device(deviceId, false); });
}

aclError aclrtResetDeviceForce(int32_t deviceId) {
  return guard_runtime(__func__, [&] { return RuntimeState::instance().reset_device(deviceId, true); });
}

aclError aclrtGetDevice(int32_t* deviceId) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(deviceId, "deviceId"));
    RG_TRY(const auto context, RuntimeState::instance().current_context());
    *deviceId = context->device().index();
    return Status::ok();
  });
}

aclError aclrtGetDeviceCount(uint32_t* count) {
  return guard_any_state(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(count, "count"));
    *count = static_cast<uint32_t>(RuntimeState::instance().device_count());
    return Status::ok();
  });
}

aclError aclrtGetRunMode(aclrtRunMode* runMode) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(runMode, "runMode"));
    *runMode = ACL_HOST;
    return Status::ok();
  });
}

aclError aclrtSynchronizeDevice() {
  return guard_runtime(__func__, [&]() -> Outcome { return RuntimeState::instance().synchronise_device(); });
}

aclError aclrtGetMemInfo(aclrtMemAttr attr, size_t* free, size_t* total) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(free, "free"));
    RG_CHECK(not_null(total, "total"));
    if (attr < ACL_DDR_MEM || attr > ACL_HBM_MEM_P2P_NORMAL)
      return Status(Code::kInvalidArgument, "attr is {}, expected an aclrtMemAttr, 0 to 9",
                    static_cast<int>(attr));
    RG_TRY(const auto context, RuntimeState::instance().current_context());
    RG_TRY(const auto info, context->device().memory_info());
    *free = info.free_bytes;
    *total = info.total_bytes;
    return Status::ok();
  });
}

// SPDX-License-Identifier: Apache-2.0
// Calls that programs make for a real card and that have no effect here: arguments are checked, nothing is
// stored.

#include "acl/acl_op_compiler.h"
#include "acl/acl_rt.h"
#include "aclnn/aclnn_base.h"
#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"

using namespace retrograd;
using namespace retrograd::api::acl;

// What functions of a list of stubs answer that are said to be unsupported: cmake/stubs.cmake.
extern "C" int retrograd_acl_unsupported(const char* function);
extern "C" int retrograd_acl_unsupported(const char* function) {
  return guard_any_state(function, []() -> Outcome {
    return {ACL_ERROR_RT_FEATURE_NOT_SUPPORT,
            "this library has no such function, only its name (RETROGRAD_ACL_STUBS)"};
  });
}

namespace {

Status check_option(aclCompileOpt opt) {
  if (opt >= ACL_PRECISION_MODE && opt <= ACL_OP_DEBUG_OPTION) return Status::ok();
  return Status(Code::kInvalidArgument, "opt is {}, expected an aclCompileOpt, 0 to 16",
                static_cast<int>(opt));
}

}  // namespace

aclError aclSetCompileopt(aclCompileOpt opt, const char* value) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(check_option(opt));
    RG_CHECK(not_null(value, "value"));
    return Status::ok();
  });
}

size_t aclGetCompileoptSize(aclCompileOpt /*opt*/) { return 1; }

aclError aclGetCompileopt(aclCompileOpt opt, char* value, size_t length) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(check_option(opt));
    RG_CHECK(not_null(value, "value"));
    if (length == 0) return Status(Code::kInvalidArgument, "length is 0, expected at least 1");
    *value = '\0';
    return Status::ok();
  });
}

aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode) {
  return guard_runtime(__func__, [&]() -> Outcome {
    if (mode >= ACL_RT_OVERFLOW_MODE_SATURATION && mode <= ACL_RT_OVERFLOW_MODE_UNDEF) return Status::ok();
    return Status(Code::kInvalidArgument, "mode is {}, expected an aclrtFloatOverflowMode, 0 to 2",
                  static_cast<int>(mode));
  });
}

aclError aclrtSetOpExecuteTimeOut(uint32_t /*timeout*/) {
  return guard_runtime(__func__, [&]() -> Outcome { return Status::ok(); });
}

aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, int32_t* active) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(flags, "flags"));
    RG_CHECK(not_null(active, "active"));
    return RuntimeState::instance().default_context_state(deviceId, flags, active);
  });
}

int InitHugeMemThreadLocal(void* /*arg*/, bool /*sync*/) { return 0; }
void UnInitHugeMemThreadLocal(void* /*arg*/, bool /*sync*/) {}
void ReleaseHugeMem(void* /*arg*/, bool /*sync*/) {}

// SPDX-License-Identifier: Apache-2.0
// The aclrt calls on contexts and on the switches of contexts and of the process.

#include "acl/acl_rt.h"
#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"

using namespace retrograd;
using namespace retrograd::api::acl;

namespace {

Status check_option(aclSysParamOpt opt) {
  const int index = static_cast<int>(opt);
  if (index >= 0 && index < runtime::Context::kOptionCount) return Status::ok();
  return Status(Code::kInvalidArgument, "opt is {}, expected 0 to {}", index,
                runtime::Context::kOptionCount - 1);
}

}  // namespace

aclError aclrtCreateContext(aclrtContext* context, int32_t deviceId) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(context, "context"));
    return RuntimeState::instance().create_context(context, deviceId);
  });
}

aclError aclrtDestroyContext(aclrtContext context) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(context, "context"));
    return RuntimeState::instance().destroy_context(context);
  });
}

aclError aclrtSetCurrentContext(aclrtContext context) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(context, "context"));
    return RuntimeState::instance().set_current_context(context);
  });
}

aclError aclrtGetCurrentContext(aclrtContext* context) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(context, "context"));
    RG_TRY(*context, RuntimeState::instance().current_context_handle());
    return Status::ok();
  });
}

aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(check_option(opt));
    RG_TRY(const auto context, RuntimeState::instance().current_context());
    context->set_option(static_cast<int>(opt), value);
    return Status::ok();
  });
}

aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(value, "value"));
    RG_CHECK(check_option(opt));
    RG_TRY(const auto context, RuntimeState::instance().current_context());
    const auto found = context->option(static_cast<int>(opt));
    if (!found)
      return Outcome(ACL_ERROR_RT_SYS_PARAMS_OPT_NOT_SET,
                     "opt is {}, which this context has no value of, expected aclrtCtxSetSysParamOpt before",
                     static_cast<int>(opt));
    *value = *found;
    return Status::ok();
  });
}

aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(check_option(opt));
    RuntimeState::instance().set_option(static_cast<int>(opt), value);
    return Status::ok();
  });
}

aclError aclrtGetSysParamOpt(aclSysParamOpt opt, int64_t* value) {
  return guard_runtime(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(value, "value"));
    RG_CHECK(check_option(opt));
    *value = RuntimeState::instance().option(static_cast<int>(opt));
    return Status::ok();
  });
}

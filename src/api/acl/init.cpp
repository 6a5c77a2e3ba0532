// SPDX-License-Identifier: Apache-2.0
// aclInit, aclFinalize, aclnnInit, aclnnFinalize, and what a program may ask at any time.
#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
#include "api/acl/config_file.h"
#include "api/acl/guard.h"
#include "api/acl/runtime_state.h"
#include "base/last_error.h"

using namespace retrograd;
using namespace retrograd::api::acl;

aclError aclInit(const char* configPath) {
  return guard_any_state(__func__, [&] { return RuntimeState::instance().initialise(configPath); });
}

aclError aclFinalize() {
  return guard_any_state(__func__, [] { return RuntimeState::instance().finalise(); });
}

const char* aclGetRecentErrMsg() { return last_error::take(); }

const char* aclrtGetSocName() {
  try {
    return RuntimeState::instance().soc_name();
  } catch (...) {
    return "Retrograd-None";
  }
}

aclError aclrtGetVersion(int32_t* majorVersion, int32_t* minorVersion, int32_t* patchVersion) {
  return guard_any_state(__func__, [&]() -> Outcome {
    RG_CHECK(not_null(majorVersion, "majorVersion"));
    RG_CHECK(not_null(minorVersion, "minorVersion"));
    RG_CHECK(not_null(patchVersion, "patchVersion"));
    *majorVersion = 1;
    *minorVersion = *patchVersion = 0;
    return Status::ok();
  });
}

aclnnStatus aclnnInit(const char* configPath) {
  return guard_operator(__func__, [&]() -> Status {
    const ConfigFile config = read_config_file(configPath);
    if (config.verdict == ConfigFile::Verdict::kOk) return Status::ok();
    return Status(Code::kInvalidArgument, config.message);
  });
}

aclnnStatus aclnnFinalize() { return 0; }

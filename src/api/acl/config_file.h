// SPDX-License-Identifier: Apache-2.0
// The JSON file that aclInit and aclnnInit take.
#pragma once

#include <optional>
#include <string>

#include "base/settings.h"

namespace retrograd::api::acl {

struct ConfigFile {
  enum class Verdict : unsigned char { kOk, kUnreadable, kMalformed };
  Verdict verdict = Verdict::kOk;
  std::string message;                 // empty when kOk
  std::optional<DeviceChoice> device;  // the key RETROGRAD_DEVICE
  std::optional<Product> rules;        // the key rules
};

// Null and "" are no file: all defaults. Keys we do not know are other programs' business and are passed
// over.
ConfigFile read_config_file(const char* path);

}  // namespace retrograd::api::acl

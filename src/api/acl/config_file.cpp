// SPDX-License-Identifier: Apache-2.0
// Reading the configuration file.
#include "api/acl/config_file.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/log.h"

namespace retrograd::api::acl {
namespace {

constexpr const char* kDeviceKey = "RETROGRAD_DEVICE";

std::optional<std::string> read_text(const char* path) {
  std::error_code error;
  // A folder opens and a pipe may never end: regular files only.
  if (!std::filesystem::is_regular_file(path, error)) return std::nullopt;
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (file.bad()) return std::nullopt;
  return text;
}

std::optional<DeviceChoice> device_of(const nlohmann::json& object, const char* path) {
  const auto entry = object.find(kDeviceKey);
  if (entry == object.end()) return std::nullopt;
  const auto choice =
      entry->is_string() ? device_choice_from_name(entry->get_ref<const std::string&>()) : std::nullopt;
  if (!choice) {
    const std::string value = entry->dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    log::warn_once(fmt::format("{} in {} is {}, expected \"cpu\", \"cuda\" or \"auto\"; it is ignored",
                               kDeviceKey, path, value));
  }
  return choice;
}

}  // namespace

ConfigFile read_config_file(const char* path) {
  if (path == nullptr || *path == '\0') return {};
  const auto text = read_text(path);
  if (!text) {
    return {ConfigFile::Verdict::kUnreadable,
            fmt::format("configPath is \"{}\", expected a file that can be read", path), std::nullopt};
  }
  // The parser takes a zero byte for the end of the text, and would not see what follows.
  const bool binary = text->find('\0') != std::string::npos;
  const auto json = nlohmann::json::parse(binary ? "" : *text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) {
    const char* found = json.is_discarded() ? "text that is no JSON" : json.type_name();
    return {ConfigFile::Verdict::kMalformed,
            fmt::format("configPath is \"{}\", which holds {}, expected a JSON object", path, found),
            std::nullopt};
  }
  return {ConfigFile::Verdict::kOk, {}, device_of(json, path)};
}

}  // namespace retrograd::api::acl

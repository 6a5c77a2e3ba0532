// SPDX-License-Identifier: Apache-2.0
// Reading the configuration file.
//
// Its JSON is read as a row of events and never as a tree: a tree is as deep as the text is nested, on the
// stack of whoever prints it, and nlohmann's allocates when it is freed, where nobody can be told of a
// failure.
#include "api/acl/config_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>
#include <variant>

#include "base/log.h"

namespace retrograd::api::acl {
namespace {

using nlohmann::json;

constexpr const char* kDeviceKey = "RETROGRAD_DEVICE";
constexpr int kDeepest = 1000;
constexpr size_t kMostBytes = size_t{16} << 20;
constexpr size_t kMostCharactersShown = 80;

class File {
 public:
  // Without waiting: opening a pipe would, until somebody writes to it.
  explicit File(const char* path) : number_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~File() {
    if (number_ >= 0) close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  // A folder opens and a pipe may never end: regular files only.
  bool is_regular() const {
    struct stat facts = {};
    return number_ >= 0 && fstat(number_, &facts) == 0 && S_ISREG(facts.st_mode);
  }
  // -1 when it fails.
  ssize_t read_some(char* to, size_t bytes) const {
    for (;;)
      if (const ssize_t got = read(number_, to, bytes); got >= 0 || errno != EINTR) return got;
  }

 private:
  int number_;
};

// The text, or what was expected of the file.
std::variant<std::string, const char*> read_text(const char* path) {
  constexpr const char* kUnreadable = "a file that can be read";
  const File file(path);
  if (!file.is_regular()) return kUnreadable;
  std::string text;
  for (;;) {
    char part[4096];
    const ssize_t got = file.read_some(part, sizeof part);
    if (got < 0) return kUnreadable;
    if (got == 0) return text;
    text.append(part, static_cast<size_t>(got));
    if (text.size() > kMostBytes) return "a file of at most 16 MiB";
  }
}

std::string in_quotes(const std::string& text) {
  return json(text).dump(-1, ' ', true, json::error_handler_t::replace);
}

// Hears what the text holds, and keeps the value of our key: its text, as far as it is shown, and its name
// where it is a string.
class Reader final : public nlohmann::json_sax<json> {
 public:
  bool is_object() const { return top_ == Top::kObject; }
  bool too_deep() const { return too_deep_; }
  const char* top_name() const { return top_ == Top::kArray ? "array" : top_name_; }
  // Nothing: the key was not there.
  const std::optional<std::string>& device_text() const { return text_; }
  const std::optional<std::string>& device_name() const { return name_; }

  bool null() override { return scalar("null", "null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false", "boolean"); }
  bool number_integer(int64_t value) override { return scalar(std::to_string(value), "number"); }
  bool number_unsigned(uint64_t value) override { return scalar(std::to_string(value), "number"); }
  bool number_float(double, const std::string& text) override { return scalar(text, "number"); }
  bool string(std::string& value) override {
    if (device_next()) name_ = value;
    return scalar(in_quotes(value), "string");
  }
  bool binary(json::binary_t&) override { return scalar("binary", "binary"); }
  bool start_object(size_t) override { return start('{', Top::kObject); }
  bool start_array(size_t) override { return start('[', Top::kArray); }
  bool end_object() override { return end('}'); }
  bool end_array() override { return end(']'); }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      inside_ = top_ == Top::kObject && name == kDeviceKey;
      if (inside_) {
        text_.emplace();
        name_.reset();
      }
    } else if (inside_) {
      show(in_quotes(name) + ":");
    }
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  enum class Top : unsigned char { kScalar, kArray, kObject };

  // Whether what comes is our key's whole value.
  bool device_next() const { return inside_ && depth_ == 1; }
  void show(const std::string& more) {
    if (text_->size() > kMostCharactersShown) return;
    // Entries of lists and objects follow each other with a comma.
    const char last = text_->empty() ? '[' : text_->back();
    if (last != '[' && last != '{' && last != ':' && more != "]" && more != "}") *text_ += ',';
    *text_ += more;
    if (text_->size() > kMostCharactersShown) text_->replace(kMostCharactersShown, std::string::npos, "...");
  }
  bool scalar(const std::string& text, const char* kind) {
    if (depth_ == 0) top_name_ = kind;
    if (inside_) show(text);
    return true;
  }
  bool start(char bracket, Top top) {
    if (depth_ == 0) top_ = top;
    if (inside_) show(std::string(1, bracket));
    too_deep_ = ++depth_ > kDeepest;
    return !too_deep_;
  }
  bool end(char bracket) {
    --depth_;
    if (inside_) show(std::string(1, bracket));
    return true;
  }

  Top top_ = Top::kScalar;
  const char* top_name_ = "null";
  int depth_ = 0;
  bool too_deep_ = false;
  bool inside_ = false;  // of the value of our key
  std::optional<std::string> text_, name_;
};

std::optional<DeviceChoice> device_of(const Reader& reader, const char* path) {
  if (!reader.device_text()) return std::nullopt;
  const auto choice = reader.device_name() ? device_choice_from_name(*reader.device_name()) : std::nullopt;
  if (!choice)
    log::warn_once(fmt::format("{} in {} is {}, expected \"cpu\", \"cuda\" or \"auto\"; it is ignored",
                               kDeviceKey, path, *reader.device_text()));
  return choice;
}

}  // namespace

ConfigFile read_config_file(const char* path) {
  if (path == nullptr || *path == '\0') return {};
  const auto read = read_text(path);
  if (const auto* const expected = std::get_if<const char*>(&read)) {
    return {ConfigFile::Verdict::kUnreadable,
            fmt::format("configPath is \"{}\", expected {}", path, *expected), std::nullopt};
  }
  const auto& text = std::get<std::string>(read);
  Reader reader;
  // The parser takes a zero byte for the end of the text, and would not see what follows.
  const bool is_json = text.find('\0') == std::string::npos && json::sax_parse(text, &reader);
  if (!is_json || !reader.is_object()) {
    const std::string found = reader.too_deep()
                                  ? fmt::format("text that is nested more than {} deep", kDeepest)
                              : is_json ? reader.top_name()
                                        : "text that is no JSON";
    return {ConfigFile::Verdict::kMalformed,
            fmt::format("configPath is \"{}\", which holds {}, expected a JSON object", path, found),
            std::nullopt};
  }
  return {ConfigFile::Verdict::kOk, {}, device_of(reader, path)};
}

}  // namespace retrograd::api::acl

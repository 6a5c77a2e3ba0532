// SPDX-License-Identifier: Apache-2.0
// Reading the configuration file.
//
// The JSON is parsed as events (SAX), never into a tree. A tree is as deep as the text is nested and is
// walked recursively, so a hostile file could exhaust the stack; and nlohmann's destructor allocates, where a
// failure could not be reported.
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

constexpr const char *kDeviceKey = "RETROGRAD_DEVICE", *kRulesKey = "rules";
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

// The value of a key of ours: its text, as far as it is shown, and its name where it is a string.
struct KeptValue {
  const char* key;
  std::optional<std::string> text, name;  // nothing: the key was not there, the value is no string
};

// Hears what the text holds, and keeps the values of our keys.
class Reader final : public nlohmann::json_sax<json> {
 public:
  bool is_object() const { return top_ == Top::kObject; }
  bool too_deep() const { return too_deep_; }
  const char* top_name() const { return top_ == Top::kArray ? "array" : top_name_; }
  const KeptValue& device() const { return kept_[0]; }
  const KeptValue& rules() const { return kept_[1]; }

  bool null() override { return scalar("null", "null"); }
  bool boolean(bool value) override { return scalar(value ? "true" : "false", "boolean"); }
  bool number_integer(int64_t value) override { return scalar(std::to_string(value), "number"); }
  bool number_unsigned(uint64_t value) override { return scalar(std::to_string(value), "number"); }
  bool number_float(double, const std::string& text) override { return scalar(text, "number"); }
  bool string(std::string& value) override {
    if (inside_ != nullptr && depth_ == 1) inside_->name = value;
    return scalar(in_quotes(value), "string");
  }
  bool binary(json::binary_t&) override { return scalar("binary", "binary"); }
  bool start_object(size_t) override { return start('{', Top::kObject); }
  bool start_array(size_t) override { return start('[', Top::kArray); }
  bool end_object() override { return end('}'); }
  bool end_array() override { return end(']'); }
  bool key(std::string& name) override {
    if (depth_ == 1) {
      inside_ = nullptr;
      for (KeptValue& value : kept_) {
        if (top_ != Top::kObject || name != value.key) continue;
        inside_ = &value;
        value.text.emplace();
        value.name.reset();
      }
    } else if (inside_ != nullptr) {
      show(in_quotes(name) + ":");
    }
    return true;
  }
  bool parse_error(size_t, const std::string&, const json::exception&) override { return false; }

 private:
  enum class Top : unsigned char { kScalar, kArray, kObject };

  void show(const std::string& more) {
    if (inside_ == nullptr) return;
    std::string& text = *inside_->text;
    if (text.size() > kMostCharactersShown) return;
    // Entries of lists and objects follow each other with a comma.
    const char last = text.empty() ? '[' : text.back();
    if (last != '[' && last != '{' && last != ':' && more != "]" && more != "}") text += ',';
    text += more;
    if (text.size() > kMostCharactersShown) text.replace(kMostCharactersShown, std::string::npos, "...");
  }
  bool scalar(const std::string& text, const char* kind) {
    if (depth_ == 0) top_name_ = kind;
    show(text);
    return true;
  }
  bool start(char bracket, Top top) {
    if (depth_ == 0) top_ = top;
    show(std::string(1, bracket));
    too_deep_ = ++depth_ > kDeepest;
    return !too_deep_;
  }
  bool end(char bracket) {
    if (--depth_ > 0) show(std::string(1, bracket));  // at 0 it ends no value of a key
    return true;
  }

  Top top_ = Top::kScalar;
  const char* top_name_ = "null";
  int depth_ = 0;
  bool too_deep_ = false;
  KeptValue kept_[2] = {{kDeviceKey, {}, {}}, {kRulesKey, {}, {}}};
  KeptValue* inside_ = nullptr;  // the value that is being read, if it is ours
};

// What the value names; one that names nothing is warned about.
template <class Choice>
std::optional<Choice> choice_of(const KeptValue& value, std::optional<Choice> (*from_name)(std::string_view),
                                const char* legal, const char* path) {
  if (!value.text) return std::nullopt;
  const auto choice = value.name ? from_name(*value.name) : std::nullopt;
  if (!choice)
    log::warn_once(
        fmt::format("{} in {} is {}, expected {}; it is ignored", value.key, path, *value.text, legal));
  return choice;
}

}  // namespace

ConfigFile read_config_file(const char* path) {
  if (path == nullptr || *path == '\0') return {};
  const auto read = read_text(path);
  if (const auto* const expected = std::get_if<const char*>(&read)) {
    return {ConfigFile::Verdict::kUnreadable,
            fmt::format("configPath is \"{}\", expected {}", path, *expected),
            {},
            {}};
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
            {},
            {}};
  }
  return {ConfigFile::Verdict::kOk,
          {},
          choice_of(reader.device(), device_choice_from_name, "\"cpu\", \"cuda\" or \"auto\"", path),
          choice_of(reader.rules(), product_from_name, "\"a2\", \"a3\", \"910_95\" or \"training\"", path)};
}

}  // namespace retrograd::api::acl

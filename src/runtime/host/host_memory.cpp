// SPDX-License-Identifier: Apache-2.0
// Reading the size and the use of the machine's memory.
#include "runtime/host/host_memory.h"

#include <fcntl.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <limits>

namespace retrograd::runtime {
namespace {

// "MemTotal:       16316412 kB" among the lines of `text`.
std::optional<size_t> bytes_of(std::string_view text, std::string_view key) {
  for (size_t at = 0; at < text.size();) {
    const size_t line_end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, line_end - at);
    at = line_end + 1;
    if (!line.starts_with(key)) continue;
    line.remove_prefix(key.size());
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    size_t kilobytes = 0;
    const auto [rest, error] = std::from_chars(line.data(), line.data() + line.size(), kilobytes);
    const std::string_view unit(rest, static_cast<size_t>(line.data() + line.size() - rest));
    constexpr size_t kMost = std::numeric_limits<size_t>::max() / 1024;
    if (error != std::errc() || unit != " kB" || kilobytes > kMost) return std::nullopt;
    return kilobytes * 1024;
  }
  return std::nullopt;
}

// The two lines wanted are among the first three; the file is longer than this, and the rest is not read.
std::string_view read_meminfo(std::array<char, 1024>& buffer) {
  const int file = open("/proc/meminfo", O_RDONLY | O_CLOEXEC);
  if (file < 0) return {};
  const ssize_t got = read(file, buffer.data(), buffer.size());
  close(file);
  return got > 0 ? std::string_view(buffer.data(), static_cast<size_t>(got)) : std::string_view();
}

}  // namespace

std::optional<MemoryInfo> parse_meminfo(std::string_view text) {
  const auto free_bytes = bytes_of(text, "MemAvailable:");
  const auto total_bytes = bytes_of(text, "MemTotal:");
  if (!free_bytes || !total_bytes) return std::nullopt;
  return MemoryInfo{.free_bytes = *free_bytes, .total_bytes = *total_bytes};
}

Result<MemoryInfo> host_memory_info() {
  std::array<char, 1024> buffer;
  if (const auto info = parse_meminfo(read_meminfo(buffer))) return *info;
  struct sysinfo info = {};
  if (sysinfo(&info) != 0)
    return Status(Code::kInternal, "neither /proc/meminfo nor sysinfo() tells the size of the memory");
  return MemoryInfo{.free_bytes = size_t{info.freeram} * info.mem_unit,
                    .total_bytes = size_t{info.totalram} * info.mem_unit};
}

}  // namespace retrograd::runtime

// SPDX-License-Identifier: Apache-2.0
// A container of images; those that are ELF files have a section of attributes for every kernel.
#include "launch_bounds.h"

#include <elf.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace retrograd::test::idle_cuda {
namespace {

struct Wrapper {
  uint32_t magic, version;
  const std::byte* container;
};
struct Container {
  uint32_t magic;
  uint16_t version, header_bytes;
  uint64_t bytes;  // of the images
};
struct Image {  // the header's beginning
  uint16_t kind, version;
  uint32_t header_bytes;
  uint64_t bytes;
};
constexpr uint32_t kContainer = 0xBA55ED50;
constexpr std::string_view kAttributes = ".nv.info.";
constexpr uint8_t kSized = 4, kMostThreads = 5;

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

// Attributes are a form, a number and two bytes, which are the value or the size of what follows.
int most_threads(const std::byte* at, const std::byte* end) {
  while (end - at >= 4) {
    const auto form = read<uint8_t>(at), number = read<uint8_t>(at + 1);
    const auto size = read<uint16_t>(at + 2);
    at += 4;
    if (form != kSized) continue;
    if (number == kMostThreads)
      return read<int32_t>(at) * std::max(read<int32_t>(at + 4), 1) * std::max(read<int32_t>(at + 8), 1);
    at += size;
  }
  return 0;
}

void read_elf(const std::byte* file, std::unordered_map<std::string, int>& bounds) {
  const auto header = read<Elf64_Ehdr>(file);
  const auto section = [&](size_t i) {
    return read<Elf64_Shdr>(file + header.e_shoff + i * sizeof(Elf64_Shdr));
  };
  const std::byte* const names = file + section(header.e_shstrndx).sh_offset;
  for (size_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr s = section(i);
    const std::string_view name = reinterpret_cast<const char*>(names + s.sh_name);
    if (!name.starts_with(kAttributes)) continue;
    const std::byte* const begin = file + s.sh_offset;
    if (const int threads = most_threads(begin, begin + s.sh_size); threads > 0)
      bounds[std::string(name.substr(kAttributes.size()))] = threads;
  }
}

}  // namespace

std::unordered_map<std::string, int> launch_bounds(const void* binary) {
  std::unordered_map<std::string, int> bounds;
  if (binary == nullptr) return bounds;
  const std::byte* at = read<Wrapper>(static_cast<const std::byte*>(binary)).container;
  const auto container = read<Container>(at);
  if (container.magic != kContainer) return bounds;
  at += container.header_bytes;
  for (const std::byte* const end = at + container.bytes; at < end;) {
    const auto image = read<Image>(at);
    at += image.header_bytes;
    if (std::memcmp(at, ELFMAG, SELFMAG) == 0) read_elf(at, bounds);
    at += image.bytes;
  }
  return bounds;
}

}  // namespace retrograd::test::idle_cuda

// SPDX-License-Identifier: Apache-2.0
#include "counters.h"

#include <array>
#include <atomic>
#include <cstdio>
#include <mutex>

namespace retrograd_torch {
namespace {

constexpr size_t kOps = static_cast<size_t>(Op::kCount);
constexpr size_t kOutcomes = static_cast<size_t>(Outcome::kCount);

constexpr size_t kDevices = 2;
constexpr std::array<const char*, kDevices> kDeviceNames = {"cpu", "cuda"};  // by retrogradDeviceType_t

using Row = std::array<uint64_t, kOutcomes>;
std::array<std::array<std::array<std::atomic<uint64_t>, kOutcomes>, kDevices>, kOps> counts;

thread_local bool probing = false;
thread_local uint64_t taken_probes = 0;

// Never destroyed: threads may still count while the process ends. Taken for refusals only, which are rare.
std::mutex& sentences_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::array<std::string, kOps>& sentences() {
  static auto* texts = new std::array<std::string, kOps>;
  return *texts;
}

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      result += escape;
    } else {
      result += c;
    }
  }
  return result + "\"";
}

// "taken": 3, "fell_back": {…}
std::string as_json(const Row& row) {
  std::string json = "\"taken\": " + std::to_string(row[0]) + ", \"fell_back\": {";
  const char* separator = "";
  for (size_t outcome = 1; outcome < kOutcomes; ++outcome) {
    if (row[outcome] == 0) continue;
    json +=
        separator + quoted(sentence_of(static_cast<Outcome>(outcome))) + ": " + std::to_string(row[outcome]);
    separator = ", ";
  }
  return json + "}";
}

}  // namespace

const char* name_of(Op op) {
  switch (op) {
    case Op::kConvolutionBackward:
      return "convolution_backward";
    case Op::kConvTbcBackward:
      return "conv_tbc_backward";
    case Op::kAvgPool2dBackward:
      return "avg_pool2d_backward";
    case Op::kAvgPool3dBackward:
      return "avg_pool3d_backward";
    case Op::kCount:
      break;
  }
  return "";
}

const char* sentence_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::kTaken:
      return "taken";
    case Outcome::kElementType:
      return "element type is not float32, float16 or bfloat16";
    case Outcome::kMixedTypes:
      return "operands have different element types";
    case Outcome::kLayout:
      return "not strided tensors of one device";
    case Outcome::kRank:
      return "not 1, 2 or 3 spatial axes";
    case Outcome::kEmpty:
      return "a tensor without elements";
    case Outcome::kRefused:
      return "refused by the planner";
    case Outcome::kStockFaster:
      return "policy auto: stock is thought to be faster";
    case Outcome::kNotDepthwise:
      return "policy depthwise: not depthwise";
    case Outcome::kRecordsGraph:
      return "a graph of the gradient is recorded";
    case Outcome::kNoWorkspace:
      return "no memory for the workspace";
    case Outcome::kCount:
      break;
  }
  return "";
}

void begin_probe() {
  probing = true;
  taken_probes = 0;
}

uint64_t end_probe() {
  probing = false;
  return taken_probes;
}

void count(Op op, retrogradDeviceType_t device, Outcome outcome) {
  if (probing) {
    taken_probes += outcome == Outcome::kTaken ? 1 : 0;
    return;
  }
  counts[static_cast<size_t>(op)][static_cast<size_t>(device)][static_cast<size_t>(outcome)].fetch_add(
      1, std::memory_order_relaxed);
}

void count_refusal(Op op, retrogradDeviceType_t device, std::string_view sentence) {
  count(op, device, Outcome::kRefused);
  if (probing) return;
  const std::lock_guard lock(sentences_mutex());
  sentences()[static_cast<size_t>(op)] = sentence;
}

void reset_counts() {
  for (auto& devices : counts)
    for (auto& row : devices)
      for (auto& number : row) number.store(0, std::memory_order_relaxed);
  const std::lock_guard lock(sentences_mutex());
  for (auto& sentence : sentences()) sentence.clear();
}

std::string counts_as_json() {
  const std::lock_guard lock(sentences_mutex());
  std::string json = "{";
  for (size_t op = 0; op < kOps; ++op) {
    Row total{};
    std::string by_device;
    for (size_t device = 0; device < kDevices; ++device) {
      Row row{};
      for (size_t outcome = 0; outcome < kOutcomes; ++outcome) {
        row[outcome] = counts[op][device][outcome].load(std::memory_order_relaxed);
        total[outcome] += row[outcome];
      }
      if (row == Row{}) continue;
      by_device += by_device.empty() ? "" : ", ";
      by_device += quoted(kDeviceNames[device]) + ": {" + as_json(row) + "}";
    }
    json += op == 0 ? "" : ", ";
    json += quoted(name_of(static_cast<Op>(op))) + ": {" + as_json(total) + ", \"by_device\": {" + by_device +
            "}";
    if (!sentences()[op].empty()) json += ", \"last_refusal\": " + quoted(sentences()[op]);
    json += "}";
  }
  return json + "}";
}

}  // namespace retrograd_torch

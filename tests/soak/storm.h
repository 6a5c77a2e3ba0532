// SPDX-License-Identifier: Apache-2.0
// What the threads of api_storm share, and how each of their calls is made, counted and judged.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>
#include <string>

#include "base/in_flight.h"

namespace retrograd::soak {

// Handles of one kind, alive and stale, as threads have put them there.
class Bag {
 public:
  void* pick(uint64_t random) const { return slots_[random % slots_.size()].load(); }
  // What lay there before.
  void* put(uint64_t random, void* handle) { return slots_[random % slots_.size()].exchange(handle); }

 private:
  std::array<std::atomic<void*>, 48> slots_{};
};

enum class Kind : unsigned char {
  kAclStream,
  kAclEvent,
  kAclContext,
  kAclBlock,
  kAclHostBlock,
  kTensor,
  kScalar,
  kIntArray,
  kFloatArray,
  kBoolArray,
  kTensorList,
  kExecutor,
  kInfiniStream,
  kInfiniEvent,
  kInfiniBlock,
  kInfiniHostBlock,
  kHandle,
  kTensorDescriptor,
  kConvDescriptor,
  kPoolDescriptor,
  kCount,
};

// Which statuses a call may end with.
enum class Family : unsigned char { kAclRuntime, kAclOperator, kInfini };

class Storm {
 public:
  Bag& bag(Kind kind) { return bags_[static_cast<size_t>(kind)]; }
  // The middle of memory that operands lie in: as far to both sides as any of them reaches. Never freed.
  char* operands() { return operands_.data() + operands_.size() / 2; }
  static constexpr int64_t kReachBytes = 1 << 20;

  bool over() const { return over_; }
  void end() { over_ = true; }
  // Prints what went wrong, and ends the storm.
  void fail(const std::string& what);
  bool failed() const { return failed_; }

  InFlight calls;  // into the library, of all threads

 private:
  std::atomic<bool> over_{false}, failed_{false};
  std::array<Bag, static_cast<size_t>(Kind::kCount)> bags_;
  alignas(64) std::array<char, 2 * kReachBytes> operands_{};
};

// One thread of the storm.
class Monkey {
 public:
  Monkey(Storm& shared, uint64_t seed) : storm(shared), random_(seed) {}

  uint64_t random() { return random_(); }
  // From `first` to `last`.
  int64_t between(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random() % static_cast<uint64_t>(last - first + 1));
  }
  bool chance(int percent) { return between(1, 100) <= percent; }
  template <class T, size_t kCount>
  T one_of(const T (&values)[kCount]) {
    return values[random() % kCount];
  }

  // A handle of that kind, most of the time: alive, stale or both soon; null, of another kind, or none at
  // all.
  void* handle(Kind kind);
  template <class T>
  T handle(Kind kind) {
    return static_cast<T>(handle(kind));
  }

  // Makes the call; its status, judged.
  template <class Body>
  int call(Family family, const char* name, const Body& body) {
    now = name;
    int status = -1;
    {
      const InFlight::Call inside(storm.calls);
      status = static_cast<int>(body());
    }
    judge(family, name, status);
    last_status = status;
    now = "";
    return status;
  }
  // The same for calls that answer with an object, null being a failure of which a message tells.
  template <class Body>
  auto create(const char* name, const Body& body) {
    now = name;
    const auto object = body();
    judge_creation(name, object != nullptr);
    now = "";
    return object;
  }

  // By call and status.
  const std::map<std::string, std::map<int, uint64_t>>& tally() const { return tally_; }
  std::atomic<const char*> now{""};  // the call that is going on, for who watches
  std::atomic<uint64_t> calls{0};
  int last_status = 0;
  uint64_t checked = 0;  // problems whose results were compared
  Storm& storm;

 private:
  void judge(Family family, const char* name, int status);
  void judge_creation(const char* name, bool made);
  void count(const char* name, int status);

  std::mt19937_64 random_;
  std::map<std::string, std::map<int, uint64_t>> tally_;
};

// Calls of one interface with arguments of all sorts; one call, or a few that belong together.
void acl_monkey(Monkey& monkey);
void infini_monkey(Monkey& monkey);
// aclInit, aclrtSetDevice, aclrtResetDevice and contexts; aclFinalize by those who lead.
void lifecycle_monkey(Monkey& monkey, bool leads);
// A small legal problem whose results are integers, compared with plain loops. Both own everything they use.
// With acl another thread may take the device away meanwhile: then nothing is compared.
void checked_acl_problem(Monkey& monkey);
void checked_infini_problem(Monkey& monkey);

#define RG_ACL(monkey, function, ...) \
  (monkey).call(Family::kAclRuntime, #function, [&] { return function(__VA_ARGS__); })
#define RG_ACLNN(monkey, function, ...) \
  (monkey).call(Family::kAclOperator, #function, [&] { return function(__VA_ARGS__); })
#define RG_INFINI(monkey, function, ...) \
  (monkey).call(Family::kInfini, #function, [&] { return function(__VA_ARGS__); })
#define RG_CREATE(monkey, function, ...) (monkey).create(#function, [&] { return function(__VA_ARGS__); })

}  // namespace retrograd::soak

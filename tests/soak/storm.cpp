// SPDX-License-Identifier: Apache-2.0
// Judging calls: a documented status, and a message with every failure.
#include "storm.h"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <set>

#include "acl/acl.h"
#include "aclnn/opdev/op_errno.h"
#include "infinicore.h"
#include "retrograd/retrograd.h"

namespace retrograd::soak {
namespace {

// The documents', less those that are defined and never returned and those that mean a fault of ours.
bool is_documented(Family family, int status) {
  static const std::set<int> runtime = {ACL_SUCCESS,
                                        ACL_ERROR_INVALID_PARAM,
                                        ACL_ERROR_UNINITIALIZE,
                                        ACL_ERROR_REPEAT_INITIALIZE,
                                        ACL_ERROR_INVALID_FILE,
                                        ACL_ERROR_PARSE_FILE,
                                        ACL_ERROR_REPEAT_FINALIZE,
                                        ACL_ERROR_RT_PARAM_INVALID,
                                        ACL_ERROR_RT_INVALID_DEVICEID,
                                        ACL_ERROR_RT_CONTEXT_NULL,
                                        ACL_ERROR_RT_STREAM_CONTEXT,
                                        ACL_ERROR_RT_INVALID_HANDLE,
                                        ACL_ERROR_RT_SYS_PARAMS_OPT_NOT_SET,
                                        ACL_ERROR_RT_MEMORY_ALLOCATION,
                                        ACL_ERROR_RT_STREAM_SYNC_TIMEOUT};
  static const std::set<int> operators = {ACLNN_SUCCESS, ACLNN_ERR_PARAM_NULLPTR, ACLNN_ERR_PARAM_INVALID,
                                          ACLNN_ERR_RUNTIME_ERROR, ACLNN_ERR_INNER_NULLPTR};
  static const std::set<int> infini = {INFINI_STATUS_SUCCESS,
                                       INFINI_STATUS_INTERNAL_ERROR,  // out of memory; looked at below
                                       INFINI_STATUS_BAD_PARAM,
                                       INFINI_STATUS_NULL_POINTER,
                                       INFINI_STATUS_DEVICE_TYPE_NOT_SUPPORTED,
                                       INFINI_STATUS_DEVICE_NOT_FOUND,
                                       INFINI_STATUS_BAD_TENSOR_DTYPE,
                                       INFINI_STATUS_BAD_TENSOR_SHAPE,
                                       INFINI_STATUS_BAD_TENSOR_STRIDES,
                                       INFINI_STATUS_INSUFFICIENT_WORKSPACE};
  const auto& known = family == Family::kAclRuntime    ? runtime
                      : family == Family::kAclOperator ? operators
                                                       : infini;
  return known.count(status) != 0;
}

bool is_out_of_memory(const std::string& message) {
  return message.find("memory") != std::string::npos || message.find("no thread") != std::string::npos ||
         message.find("bytes were asked for") != std::string::npos;
}

// Taken, so that the next failure's is not mistaken for it.
std::string message_of(Family family) {
  const char* taken = aclGetRecentErrMsg();
  if (family == Family::kInfini) return retrogradGetLastError();
  return taken == nullptr ? "" : taken;
}

}  // namespace

void Storm::fail(const std::string& what) {
  static std::mutex printing;
  std::lock_guard lock(printing);
  std::printf("FAILED: %s\n", what.c_str());
  std::fflush(stdout);
  failed_ = true;
  over_ = true;
}

void* Monkey::handle(Kind kind) {
  const int64_t sort = between(1, 100);
  if (sort <= 72) return storm.bag(kind).pick(random());
  if (sort <= 80) return nullptr;
  if (sort <= 90)
    return storm.bag(static_cast<Kind>(random() % static_cast<uint64_t>(Kind::kCount))).pick(random());
  // Numbers like those that are minted, addresses of ours, and anything.
  const uintptr_t numbers[] = {uintptr_t{0x0ac1'0000'0000'0000} + 16 * (random() % 100000),
                               reinterpret_cast<uintptr_t>(storm.operands()) + random() % 64,
                               reinterpret_cast<uintptr_t>(this),
                               uintptr_t{1},
                               ~uintptr_t{0},
                               static_cast<uintptr_t>(random())};
  return reinterpret_cast<void*>(one_of(numbers));  // NOLINT(performance-no-int-to-ptr)
}

void Monkey::count(const char* name, int status) {
  ++tally_[name][status];
  ++calls;
}

void Monkey::judge(Family family, const char* name, int status) {
  count(name, status);
  const std::string message = message_of(family);
  const std::string said = std::string(name) + " answered " + std::to_string(status) + ": " + message;
  if (!is_documented(family, status)) return storm.fail(said + " (no documented status)");
  if (status == 0) return;
  const std::string head = std::to_string(status) + " ";
  if (message.compare(0, head.size(), head) != 0 || message.size() < head.size() + std::strlen(name) / 2)
    return storm.fail(said + " (no message of this status)");
  if (family == Family::kInfini && status == INFINI_STATUS_INTERNAL_ERROR && !is_out_of_memory(message))
    storm.fail(said);
}

void Monkey::judge_creation(const char* name, bool made) {
  count(name, made ? 0 : -1);
  const std::string message = message_of(Family::kAclOperator);
  if (!made && message.empty()) storm.fail(std::string(name) + " answered null without a message");
}

}  // namespace retrograd::soak

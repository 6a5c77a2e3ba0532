// SPDX-License-Identifier: Apache-2.0
// Init, finalize and the contexts of devices.
#include "api/acl/runtime_state.h"

#include <fmt/format.h>

#include <list>

#include "api/acl/config_file.h"
#include "api/acl/objects.h"
#include "base/in_flight.h"
#include "base/per_process.h"
#include "base/thread_slot.h"
#include "runtime/memory.h"

namespace retrograd::api::acl {
namespace {

// Handles are never reused, so one that is not in the table any more means that the context died.
const ThreadSlot<const void> current_handle;

Status make_current(const void* context) {
  if (current_handle.set(context)) return Status::ok();
  return {Code::kOutOfMemory, "this thread has no room for its current context"};
}

// One of the names that a product's chips have.
const char* soc_name_of(Product product) {
  static constexpr const char* kNames[] = {"Ascend910B1", "Ascend910_9391", "Ascend910_9589", "Ascend910A"};
  return kNames[static_cast<size_t>(product)];
}

Status no_context() {
  return Status(
      Code::kNoDevice,
      "this thread has no current context, expected aclrtSetDevice or aclrtSetCurrentContext before");
}

}  // namespace

RuntimeState& RuntimeState::instance() {
  static constinit PerProcess<RuntimeState> state;
  return state.get();
}

Outcome RuntimeState::initialise(const char* config_path) {
  std::lock_guard whole(lifecycle_mutex_);
  std::lock_guard lock(mutex_);
  if (initialised_)
    return Outcome(ACL_ERROR_REPEAT_INITIALIZE, "called a second time, expected aclFinalize before");
  ConfigFile config = read_config_file(config_path);
  if (config.verdict == ConfigFile::Verdict::kUnreadable)
    return Outcome(ACL_ERROR_INVALID_FILE, config.message);
  if (config.verdict == ConfigFile::Verdict::kMalformed) return Outcome(ACL_ERROR_PARSE_FILE, config.message);
  configured_ = config.device.value_or(DeviceChoice::kAuto);
  configured_rules_ = config.rules ? static_cast<int>(*config.rules) : -1;
  initialised_ = true;
  return Status::ok();
}

// First new work is refused, then calls that are going on come to their end, then their work does, and only
// then is anything taken away.
Outcome RuntimeState::finalise() {
  std::lock_guard whole(lifecycle_mutex_);
  const auto all = [](const auto&) { return true; };
  std::list<std::shared_ptr<StreamEntry>> streams;
  std::list<std::shared_ptr<ContextEntry>> contexts;
  {
    std::lock_guard lock(mutex_);
    if (!initialised_) {
      if (finalised_before_)
        return Outcome(ACL_ERROR_REPEAT_FINALIZE, "called a second time, expected aclInit before");
      return Outcome(ACL_ERROR_UNINITIALIZE, "aclInit has not been called{}", fork_note());
    }
    initialised_ = false;
  }
  calls_in_flight().drain();
  {
    std::lock_guard lock(mutex_);
    finalised_before_ = true;
    configured_ = DeviceChoice::kAuto;
    configured_rules_ = -1;
    streams = streams_.remove_if(all);
    contexts = contexts_.remove_if(all);
    default_contexts_.clear();
    for (auto& option : options_) option = 0;
  }
  for (const auto& entry : streams) (void)entry->stream->synchronize();
  for (const auto& entry : contexts) (void)entry->context->default_stream()->synchronize();
  events_.remove_if(all);
  runtime::AllocationTable::instance().release_all(runtime::MemoryOwner::kAcl);
  return Status::ok();
}

// The environment wins over the file.
runtime::DeviceKind RuntimeState::kind() const {
  switch (settings().device.value_or(configured_)) {
    case DeviceChoice::kCpu:
      return runtime::DeviceKind::kCpu;
    case DeviceChoice::kCuda:
      return runtime::DeviceKind::kCuda;
    case DeviceChoice::kAuto:
      break;
  }
  const bool any_cuda = runtime::device_count(runtime::DeviceKind::kCuda) > 0;
  return any_cuda ? runtime::DeviceKind::kCuda : runtime::DeviceKind::kCpu;
}

std::optional<Product> RuntimeState::product() const {
  if (settings().rules) return settings().rules;
  const int configured = configured_rules_;
  return configured < 0 ? std::nullopt : std::optional(static_cast<Product>(configured));
}

int RuntimeState::device_count() const { return runtime::device_count(kind()); }

runtime::Device* RuntimeState::device(int32_t index) const { return runtime::find_device(kind(), index); }

const char* RuntimeState::soc_name() const {
  if (const std::string& name = settings().soc_name; !name.empty()) return name.c_str();
  if (const auto chosen = product()) return soc_name_of(*chosen);
  // Not current_context(): the text of its failure would need memory.
  if (const auto entry = contexts_.find(current_handle.get())) return entry->context->device().soc_name();
  const runtime::Device* first = device(0);
  return first != nullptr ? first->soc_name() : "Retrograd-None";
}

Outcome RuntimeState::no_such_device(int32_t index) const {
  const char* name = kind() == runtime::DeviceKind::kCpu ? "CPU" : "CUDA";
  return Outcome(ACL_ERROR_RT_INVALID_DEVICEID,
                 device_count() > 0
                     ? fmt::format("deviceId is {}, expected 0 to {}: the numbers of the {} devices", index,
                                   device_count() - 1, name)
                     : fmt::format("deviceId is {}, but there is no {} device", index, name));
}

Result<aclrtContext> RuntimeState::insert_context(runtime::Device& device, bool is_default) {
  RG_TRY(auto context, runtime::Context::create(device));
  auto entry = std::make_shared<ContextEntry>(ContextEntry{std::move(context), is_default});
  return contexts_.insert(std::move(entry));
}

// Looks at the init flag once more, under the lock: a finalize that ran meanwhile must not be survived by a
// context.
Outcome RuntimeState::set_device(int32_t index) {
  runtime::Device* const chosen = device(index);
  if (chosen == nullptr) return no_such_device(index);
  std::lock_guard lock(mutex_);
  if (auto state = check_initialised(); state.code() != ACL_SUCCESS) return state;
  DefaultContext& entry = default_contexts_[index];
  if (entry.handle == nullptr) {
    RG_TRY(entry.handle, insert_context(*chosen, /*is_default=*/true));
  }
  RG_CHECK(make_current(entry.handle));
  ++entry.sets;
  return Status::ok();
}

Outcome RuntimeState::default_context_state(int32_t index, uint32_t* flags, int32_t* active) const {
  if (device(index) == nullptr) return no_such_device(index);
  std::lock_guard lock(mutex_);
  const auto it = default_contexts_.find(index);
  *flags = 0;
  *active = it != default_contexts_.end() && it->second.handle != nullptr ? 1 : 0;
  return Status::ok();
}

Outcome RuntimeState::reset_device(int32_t index, bool to_zero) {
  if (device(index) == nullptr) return no_such_device(index);
  aclrtContext dying = nullptr;
  {
    std::lock_guard lock(mutex_);
    const auto it = default_contexts_.find(index);
    if (it == default_contexts_.end() || it->second.handle == nullptr)
      return Status(Code::kNoDevice, "deviceId is {}, expected a device that aclrtSetDevice has set", index);
    if (--it->second.sets > 0 && !to_zero) return Status::ok();
    dying = it->second.handle;
    default_contexts_.erase(it);
  }
  drain_context(dying);
  return Status::ok();
}

Result<std::shared_ptr<runtime::Context>> RuntimeState::current_context() const {
  const auto entry = contexts_.find(current_handle.get());
  if (entry == nullptr) return no_context();
  return entry->context;
}

Result<aclrtContext> RuntimeState::current_context_handle() const {
  if (contexts_.find(current_handle.get()) == nullptr) return no_context();
  return const_cast<aclrtContext>(current_handle.get());
}

Status RuntimeState::set_current_context(aclrtContext context) {
  if (contexts_.find(context) == nullptr) return dead_handle("context", context, "aclrtContext");
  return make_current(context);
}

Outcome RuntimeState::create_context(aclrtContext* context, int32_t index) {
  runtime::Device* const chosen = device(index);
  if (chosen == nullptr) return no_such_device(index);
  std::lock_guard lock(mutex_);
  if (auto state = check_initialised(); state.code() != ACL_SUCCESS) return state;
  RG_TRY(*context, insert_context(*chosen, /*is_default=*/false));
  RG_CHECK(make_current(*context));
  return Status::ok();
}

Status RuntimeState::destroy_context(aclrtContext context) {
  const auto entry = contexts_.find(context);
  if (entry == nullptr) return dead_handle("context", context, "aclrtContext");
  if (entry->is_default) {
    return Status(Code::kInvalidArgument,
                  "context is {}, the default context of device {}, expected one that aclrtCreateContext "
                  "made; aclrtResetDevice destroys the default one",
                  context, entry->context->device().index());
  }
  drain_context(context);
  return Status::ok();
}

void RuntimeState::drain_context(aclrtContext context) {
  std::shared_ptr<ContextEntry> entry;
  std::list<std::shared_ptr<StreamEntry>> streams;
  {
    std::lock_guard lock(mutex_);
    entry = contexts_.remove(context);
    streams = streams_.remove_if([&](const StreamEntry& stream) { return stream.context == context; });
  }
  for (const auto& stream : streams) (void)stream->stream->synchronize();
  if (entry != nullptr) (void)entry->context->default_stream()->synchronize();
}

Result<runtime::Device*> RuntimeState::operator_device() const {
  if (!initialised_) return Status(Code::kNoDevice, not_initialised());
  RG_TRY(const auto context, current_context());
  return &context->device();
}

}  // namespace retrograd::api::acl

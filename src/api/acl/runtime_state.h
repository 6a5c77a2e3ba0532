// SPDX-License-Identifier: Apache-2.0
// State of the acl runtime: the init flag, the choice of devices, contexts, streams, events, each thread's
// current context.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>

#include "acl/acl_base.h"
#include "api/acl/guard.h"
#include "base/handle_table.h"
#include "base/settings.h"
#include "base/status.h"
#include "runtime/context.h"
#include "runtime/device.h"
#include "runtime/stream.h"

namespace retrograd::api::acl {

class RuntimeState {
 public:
  // Never destroyed: callers' own static objects may outlive ours.
  static RuntimeState& instance();

  Outcome initialise(const char* config_path);
  // Destroys everything the aclrt calls made that is still alive. Waits for calls of other threads that have
  // begun; those that begin meanwhile are refused.
  Outcome finalise();
  bool initialised() const { return initialised_; }

  // The product whose rules are kept; the environment wins over the file.
  std::optional<Product> product() const;

  int device_count() const;
  const char* soc_name() const;

  // aclrtSetDevice, aclrtResetDevice and aclrtResetDeviceForce.
  Outcome set_device(int32_t index);
  Outcome reset_device(int32_t index, bool to_zero);
  // flags: 0; active: whether aclrtSetDevice made the device's default context, and no reset took it away.
  Outcome default_context_state(int32_t index, uint32_t* flags, int32_t* active) const;

  Result<std::shared_ptr<runtime::Context>> current_context() const;
  Result<aclrtContext> current_context_handle() const;
  Status set_current_context(aclrtContext context);
  Outcome create_context(aclrtContext* context, int32_t index);
  Status destroy_context(aclrtContext context);

  Result<aclrtStream> create_stream();
  // Of the current context; null is its default stream.
  Result<std::shared_ptr<runtime::Stream>> stream(aclrtStream stream) const;
  // Finishes what is pending, or drops what has not started.
  Status destroy_stream(aclrtStream stream, bool drop_pending);
  // Waits for every stream of the current context's device.
  Status synchronise_device();

  // For operators, whose statuses differ: the device phase one plans for; the stream phase two is given.
  Result<runtime::Device*> operator_device() const;
  Result<std::shared_ptr<runtime::Stream>> operator_stream(aclrtStream stream) const;

  HandleTable<runtime::Event>& events() { return events_; }
  Result<std::shared_ptr<runtime::Event>> event(aclrtEvent event, const char* name) const;

  // Process-wide switches, 0 before any set.
  int64_t option(int index) const { return options_[static_cast<size_t>(index)]; }
  void set_option(int index, int64_t value) { options_[static_cast<size_t>(index)] = value; }

 private:
  struct ContextEntry {
    std::shared_ptr<runtime::Context> context;
    bool is_default = false;
  };
  struct StreamEntry {
    std::shared_ptr<runtime::Stream> stream;
    const void* context = nullptr;
  };
  struct DefaultContext {
    aclrtContext handle = nullptr;
    int64_t sets = 0;
  };

  runtime::DeviceKind kind() const;
  runtime::Device* device(int32_t index) const;
  Outcome no_such_device(int32_t index) const;
  Result<aclrtContext> insert_context(runtime::Device& device, bool is_default);
  void drain_context(aclrtContext context);

  std::mutex lifecycle_mutex_;  // held by initialise() and finalise() from their begin to their end
  mutable std::mutex
      mutex_;  // held while contexts and streams are made or unmade, never while waiting for work
  std::atomic<bool> initialised_{false};
  bool finalised_before_ = false;
  std::atomic<DeviceChoice> configured_{DeviceChoice::kAuto};
  std::atomic<int> configured_rules_{-1};  // a Product; negative: none
  std::map<int32_t, DefaultContext> default_contexts_;
  HandleTable<ContextEntry> contexts_;
  HandleTable<StreamEntry> streams_;
  HandleTable<runtime::Event> events_;
  std::array<std::atomic<int64_t>, runtime::Context::kOptionCount> options_{};
};

}  // namespace retrograd::api::acl

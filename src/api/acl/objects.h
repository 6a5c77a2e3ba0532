// SPDX-License-Identifier: Apache-2.0
// The objects behind aclTensor, the arrays, aclScalar and aclOpExecutor, and the tables that know which are
// alive.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "acl/acl_base.h"
#include "aclnn/acl_meta.h"
#include "base/dims.h"
#include "base/handle_table.h"
#include "base/per_process.h"
#include "base/status.h"
#include "plan/plan.h"

namespace retrograd::api::acl {

// As the caller described it; operators judge it.
struct Tensor {
  Dims shape;
  Dims strides;
  int64_t offset = 0;
  std::optional<Dims> storage_shape;  // nullopt: not said
  aclDataType dtype = ACL_DT_UNDEFINED;
  aclFormat format = ACL_FORMAT_UNDEFINED;
  void* data = nullptr;
};

using IntArray = std::vector<int64_t>;
using FloatArray = std::vector<float>;
using BoolArray = std::vector<bool>;
using TensorList = std::vector<const aclTensor*>;

struct Scalar {
  aclDataType dtype = ACL_DT_UNDEFINED;
  std::array<std::byte, 16> bytes{};
};

// One tensor of a call, as captured in phase one.
struct Slot {
  const char* name = "";
  std::optional<problem::Operand>
      operand;  // nullopt: no pass touches it (conv_tbc's bias, what a mask leaves out)
  void* data = nullptr;
  int64_t offset_bytes = 0;
  bool has_elements = false;
};

struct Executor {
  std::string_view operation;
  std::shared_ptr<const plan::Plan> plan;
  size_t input_count = 0;

  std::mutex mutex;         // guards what follows
  std::vector<Slot> slots;  // inputs, then outputs
  bool repeatable = false;
  bool consumed = false;  // ran once, and is not repeatable
};

// What is behind each C type, and what messages call it.
template <class T>
struct Kind {
  using Type = T;
  const char* name;
};
constexpr Kind<Tensor> kind_of(const aclTensor*) { return {"aclTensor"}; }
constexpr Kind<Scalar> kind_of(const aclScalar*) { return {"aclScalar"}; }
constexpr Kind<IntArray> kind_of(const aclIntArray*) { return {"aclIntArray"}; }
constexpr Kind<FloatArray> kind_of(const aclFloatArray*) { return {"aclFloatArray"}; }
constexpr Kind<BoolArray> kind_of(const aclBoolArray*) { return {"aclBoolArray"}; }
constexpr Kind<TensorList> kind_of(const aclTensorList*) { return {"aclTensorList"}; }
constexpr Kind<Executor> kind_of(const aclOpExecutor*) { return {"aclOpExecutor"}; }
template <class Handle>
using Object = typename decltype(kind_of(static_cast<const Handle*>(nullptr)))::Type;

// Never destroyed: a caller's own static objects may outlive ours.
template <class Handle>
HandleTable<Object<Handle>>& table() {
  static constinit PerProcess<HandleTable<Object<Handle>>> live;
  return live.get();
}

Status null_handle(const char* name, const char* type);
Status dead_handle(const char* name, const void* handle, const char* type);

template <class Handle>
Handle* make_handle(std::shared_ptr<Object<Handle>> object) {
  return static_cast<Handle*>(table<Handle>().insert(std::move(object)));
}

// The object behind `handle`; kNullArgument, or kBadHandle when it is dead, foreign or of another kind.
template <class Handle>
Result<std::shared_ptr<Object<Handle>>> find(const Handle* handle, const char* name) {
  if (handle == nullptr) return null_handle(name, kind_of(handle).name);
  auto object = table<Handle>().find(handle);
  if (object == nullptr) return dead_handle(name, handle, kind_of(handle).name);
  return object;
}

// Null is destroyed successfully.
template <class Handle>
Status destroy(const Handle* handle, const char* name) {
  if (handle == nullptr || table<Handle>().remove(handle) != nullptr) return Status::ok();
  return dead_handle(name, handle, kind_of(handle).name);
}

}  // namespace retrograd::api::acl

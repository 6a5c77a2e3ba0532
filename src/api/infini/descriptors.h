// SPDX-License-Identifier: Apache-2.0
// The objects behind infiniop's handles and descriptors, and the tables of those that are alive.
#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <initializer_list>
#include <memory>

#include "api/infini/guard.h"
#include "base/handle_table.h"
#include "infiniop.h"
#include "infinirt.h"
#include "plan/plan.h"
#include "problem/tensor_view.h"

// Clients read these two ints behind a handle and behind an operator descriptor.
struct InfiniopHandle {
  int device = 0;
  int device_id = 0;
};

struct InfiniopTensorDescriptor {
  infiniDtype_t dtype = INFINI_DTYPE_INVALID;
  retrograd::Dims shape, strides;
};

namespace retrograd::api::infini {

enum class Operation : unsigned char { kConvBackward, kAvgPoolBackward };

}  // namespace retrograd::api::infini

struct InfiniopDescriptor {
  int device = 0;
  int device_id = 0;
  retrograd::api::infini::Operation operation = retrograd::api::infini::Operation::kConvBackward;
  std::shared_ptr<const retrograd::plan::Plan> plan;
  // A tensor without elements has no data to point at.
  bool grad_output_is_empty = false;
};

namespace retrograd::api::infini {

HandleTable<InfiniopHandle>& handles();
HandleTable<InfiniopTensorDescriptor>& tensor_descriptors();
HandleTable<InfiniopDescriptor>& operator_descriptors();

// The live object behind a caller's pointer.
template <class T>
Result<std::shared_ptr<T>> find_live(const HandleTable<T>& table, const T* pointer, const char* argument) {
  if (pointer == nullptr) return Status(Code::kNullArgument, fmt::format("{} is null", argument));
  if (auto object = table.find(pointer)) return object;
  return Status(Code::kBadHandle,
                fmt::format("{} is {}, which is not alive: destroyed, or never created as such", argument,
                            fmt::ptr(pointer)));
}
template <class T>
Status destroy(HandleTable<T>& table, T* pointer, const char* argument) {
  RG_TRY(const auto object, find_live(table, pointer, argument));
  table.remove(pointer);
  return Status::ok();
}
// Puts `object` into `table` and its address into `out`.
template <class T>
void publish(HandleTable<T>& table, std::shared_ptr<T> object, T** out) {
  T* const address = object.get();
  table.insert_at(address, std::move(object));
  *out = address;
}

Result<std::shared_ptr<InfiniopDescriptor>> find_descriptor(const InfiniopDescriptor* pointer,
                                                            Operation operation);

// The device a handle stands for.
Answer device_of(const InfiniopHandle* handle, runtime::Device*& device);
// What an operator makes of a tensor descriptor; fails on element types that no operator takes.
Result<problem::TensorView> view_of(const InfiniopTensorDescriptor* pointer, const char* argument);

// Entries of an attribute list: rank − 2; 0 where the ranks are not legal. Lists are not read then, as nobody
// knows how long they are, and the judgement stops at the ranks.
int spatial_rank(std::initializer_list<const problem::TensorView*> views);

// What the calls of all operators come down to.
Status workspace_size(const InfiniopDescriptor* pointer, Operation operation, size_t* size);
Status destroy_descriptor(InfiniopDescriptor* pointer, Operation operation);
// Runs the plan of `descriptor` on `stream`.
Status run(const InfiniopDescriptor& descriptor, const plan::Bindings& bindings, void* workspace,
           size_t workspace_size, infinirtStream_t stream);
// Has `request` judged and planned for `device`, and hands the descriptor out; writes nothing on failure.
Status create_descriptor(runtime::Device& device, problem::Request request, InfiniopDescriptor** out);

}  // namespace retrograd::api::infini

// SPDX-License-Identifier: Apache-2.0
// The objects behind infiniop's handles and descriptors, and the tables of those that are alive.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <new>
#include <utility>

#include "api/infini/guard.h"
#include "base/cell_mint.h"
#include "base/handle_table.h"
#include "base/per_process.h"
#include "infiniop.h"
#include "infinirt.h"
#include "plan/plan.h"
#include "problem/tensor_view.h"

// What a caller's pointer leads to: a cell of its own, whose address is never used again, with the two ints
// that clients read behind a handle and behind an operator descriptor. The object itself is found in a table.
struct InfiniopHandle {
  int device = 0;
  int device_id = 0;
};
struct InfiniopDescriptor {
  int device = 0;
  int device_id = 0;
};
struct InfiniopTensorDescriptor {};

namespace retrograd::api::infini {

enum class Operation : unsigned char { kConvBackward, kAvgPoolBackward, kConv, kAvgPool };

// The device stands in the cell, where a client may write it.
struct Handle {};

struct Tensor {
  infiniDtype_t dtype = INFINI_DTYPE_INVALID;
  Dims shape, strides;
};

struct Operator {
  Operation operation = Operation::kConvBackward;
  std::shared_ptr<const plan::Plan> plan;
  // A tensor without elements has no data to point at.
  bool grad_output_is_empty = false;
};

// The object of each C type, which is never made: only its type is asked for.
Handle object_of(const InfiniopHandle&);
Tensor object_of(const InfiniopTensorDescriptor&);
Operator object_of(const InfiniopDescriptor&);
template <class Cell>
using Object = decltype(object_of(std::declval<const Cell&>()));

// Of all kinds, so that an address is never of two kinds either.
CellMint& cells();

// Which are alive. Never destroyed, so that a client's static destructors find it.
template <class Cell>
HandleTable<Object<Cell>>& table() {
  static constinit PerProcess<HandleTable<Object<Cell>>> live;
  return live.get();
}

Status not_alive(const void* pointer, const char* argument);

// The live object behind a caller's pointer.
template <class Cell>
Result<std::shared_ptr<Object<Cell>>> find_live(const Cell* pointer, const char* argument) {
  if (pointer == nullptr) return Status(Code::kNullArgument, "{} is null", argument);
  if (auto object = table<Cell>().find(pointer)) return object;
  return not_alive(pointer, argument);
}
template <class Cell>
Status destroy(Cell* pointer, const char* argument) {
  if (pointer == nullptr) return Status(Code::kNullArgument, "{} is null", argument);
  // Two threads may be destroying it: the one that takes it out of the table goes on.
  if (table<Cell>().remove(pointer) == nullptr) return not_alive(pointer, argument);
  cells().give_back(pointer);
  return Status::ok();
}
// Hands out a cell that holds `contents` and leads to `object`.
template <class Cell>
void publish(std::shared_ptr<Object<Cell>> object, const Cell& contents, Cell** out) {
  static_assert(sizeof(Cell) <= CellMint::kCellBytes);
  Cell* const cell = new (cells().take()) Cell(contents);
  try {
    table<Cell>().insert_at(cell, std::move(object));
  } catch (...) {
    cells().give_back(cell);
    throw;
  }
  *out = cell;
}

Result<std::shared_ptr<Operator>> find_descriptor(const InfiniopDescriptor* pointer, Operation operation);

// The device a handle stands for.
Result<runtime::Device*> device_of(const InfiniopHandle* handle);
// What an operator makes of a tensor descriptor; fails on element types that no operator takes.
Result<problem::TensorView> view_of(const InfiniopTensorDescriptor* pointer, const char* argument);

// Entries of an attribute list: rank − 2; 0 where the ranks are not legal. Lists are not read then, as nobody
// knows how long they are, and the judgement stops at the ranks.
int spatial_rank(std::initializer_list<const problem::TensorView*> views);

// What the calls of all operators come down to.
Status workspace_size(const InfiniopDescriptor* pointer, Operation operation, size_t* size);
Status destroy_descriptor(InfiniopDescriptor* pointer, Operation operation);
// Runs the plan of `descriptor` on `stream`.
Status run(const Operator& descriptor, const plan::Bindings& bindings, void* workspace, size_t workspace_size,
           infinirtStream_t stream);
// Has `request` judged and planned for `device`, and hands the descriptor out; writes nothing on failure.
Status make_descriptor(runtime::Device& device, problem::Request request, InfiniopDescriptor** out);

// A create call of an operator; read_request makes a Result<problem::Request>.
template <class ReadRequest>
infiniStatus_t create_descriptor(const char* function, const InfiniopHandle* handle, InfiniopDescriptor** out,
                                 const ReadRequest& read_request) noexcept {
  return guard(function, [&]() -> Status {
    RG_TRY(runtime::Device* const device, device_of(handle));
    if (out == nullptr) return {Code::kNullArgument, "desc_ptr is null"};
    RG_TRY(problem::Request request, read_request());
    return make_descriptor(*device, std::move(request), out);
  });
}

}  // namespace retrograd::api::infini

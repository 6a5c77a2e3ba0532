// SPDX-License-Identifier: Apache-2.0
// The steps go through oneDNN's C call: its C++ one builds a list of arguments each time, a microsecond that
// a tiny problem would be charged for.
#include "sequence.h"

namespace retrograd::peers {

using dnnl::memory;
using problem::Operand;

memory Sequence::read(Operand operand, const memory::desc& wanted) {
  const memory& plain = (*tensors_)[operand];
  if (plain.get_desc() == wanted) return plain;
  for (const Copy& copy : read_)
    if (copy.operand == operand && copy.memory.get_desc() == wanted) return copy.memory;
  const memory blocked(wanted, engine_);
  add_reorder(plain, blocked);
  read_.push_back({operand, blocked});
  return blocked;
}

memory Sequence::written(Operand operand, const memory::desc& wanted) {
  const memory& plain = (*tensors_)[operand];
  if (plain.get_desc() == wanted) return plain;
  written_.push_back({operand, memory(wanted, engine_)});
  return written_.back().memory;
}

void Sequence::write_back() {
  for (const Copy& copy : written_) add_reorder(copy.memory, (*tensors_)[copy.operand]);
}

void Sequence::add_reorder(const memory& from, const memory& to) {
  add(dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  ++reorders_;
}

void Sequence::add(const dnnl::primitive& primitive, const std::vector<std::pair<int, memory>>& arguments) {
  Step step{primitive, {}};
  for (const auto& [index, argument] : arguments) {
    step.arguments.push_back({index, argument.get()});
    kept_.push_back(argument);
  }
  steps_.push_back(std::move(step));
}

void Sequence::run(const dnnl::stream& stream) const {
  for (const Step& step : steps_)
    dnnl::error::wrap_c_api(
        dnnl_primitive_execute(step.primitive.get(), stream.get(), static_cast<int>(step.arguments.size()),
                               step.arguments.data()),
        "a primitive failed");
  dnnl::error::wrap_c_api(dnnl_stream_wait(stream.get()), "waiting failed");
}

}  // namespace retrograd::peers

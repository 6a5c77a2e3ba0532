// SPDX-License-Identifier: Apache-2.0
// Converts predicted microseconds to the operations that cost.h divides by the peak.
#include "engines/cuda/effort.h"

#include <algorithm>

namespace retrograd::engines::cuda {
namespace {

// Of the copy bandwidth: in a copy that changes the order of elements, 1.5 TB/s of results on an H200, and in
// products.
constexpr double kOfCopies = 0.75, kOfProducts = 0.8;
constexpr double kElement = 8.6;  // bytes of a copy that take as long: 5e5 elements a microsecond on an H200

bool is_sixteen_bits(const problem::Pass& pass) { return size_of(result_of(pass).dtype) == 2; }

}  // namespace

Times::Times(const problem::Pass& pass, const Machine& machine)
    : peak_(std::max(is_sixteen_bits(pass) ? machine.gpu.f16_tflops : machine.gpu.fp32_tflops, 1e-3) * 1e6),
      bandwidth_(std::max(machine.gpu.copy_gbs, 1e-3) * 1e3) {}

void Times::add(double microseconds, double launches, double bytes) {
  microseconds_ += std::max(microseconds, bytes / (bandwidth_ * kOfProducts));
  launches_ += launches;
}

void Times::add_copy(double bytes) { add(2 * bytes / (bandwidth_ * kOfCopies)); }

void Times::add_elements(double elements, double launches) {
  add(elements * kElement / bandwidth_, launches);
}

Effort Times::effort() const {
  return {.operations = microseconds_ * peak_, .bytes = 0, .launches = launches_};
}

Effort paced(const ConvPass& pass, double microseconds, double launches, const Machine& machine) {
  Times times(pass, machine);
  times.add(microseconds * kPacedProcessors / processors_of(machine), launches, bytes_of(pass));
  return times.effort();
}

Effort of_cycles(const ConvPass& pass, double cycles, const Machine& machine) {
  constexpr double kOperations = 2 * 128 * 132;
  Times times(pass, machine);
  times.add(cycles * kOperations / (std::max(machine.gpu.fp32_tflops, 1e-3) * 1e6), 1, bytes_of(pass));
  return times.effort();
}

Effort on_fp32_units(Effort effort, const problem::Pass& pass, const Machine& machine) {
  if (is_sixteen_bits(pass)) effort.operations *= machine.gpu.f16_tflops / machine.gpu.fp32_tflops;
  return effort;
}

double operations_of(const ConvPass& pass) {
  const auto number = [](int64_t size) { return static_cast<double>(size); };
  double operations = 2 * number(pass.batch) * number(pass.x_channels) * number(pass.y_channels_per_group());
  for (const Window& w : pass.axes) operations *= number(w.kernel) * number(w.y);
  return operations;
}

double live_terms(const ConvPass& pass) {
  constexpr int64_t kMostTaps = 4096;  // beyond that, all of them are counted
  double terms = operations_of(pass) / 2;
  for (const Window& w : pass.axes) {
    if (w.kernel < 1 || w.y < 1 || w.kernel > kMostTaps) continue;
    int64_t live = 0;
    for (int64_t tap = 0; tap < w.kernel; ++tap) live += live_outputs(w, tap).size();
    terms *= static_cast<double>(live) / static_cast<double>(w.kernel * w.y);
  }
  return terms;
}

double bytes_of(const PassTensor& tensor, const Sizes5& sizes) {
  auto bytes = static_cast<double>(size_of(tensor.dtype));
  for (const int64_t size : sizes) bytes *= static_cast<double>(size);
  return bytes;
}

double bytes_of(const ConvPass& pass) {
  return bytes_of(pass.x, x_sizes(pass)) + bytes_of(pass.y, y_sizes(pass)) + bytes_of(pass.w, w_sizes(pass));
}

}  // namespace retrograd::engines::cuda

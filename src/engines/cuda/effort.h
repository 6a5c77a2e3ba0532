// SPDX-License-Identifier: Apache-2.0
// Efforts of implementations that predict their time by a formula of their own: the operations that the
// machine's peak performs in that time.
#pragma once

#include "engines/cuda/layouts.h"
#include "engines/engine.h"

namespace retrograd::engines::cuda {

// Multiprocessors of the GPU on which kernels were measured: plans' times are for it.
inline constexpr double kPacedProcessors = 132;

// Kernels one after the other, copies and products.
class Times {
 public:
  Times(const problem::Pass& pass, const Machine& machine);
  // The longer of what a formula says and of bytes that go through memory once.
  void add(double microseconds, double launches = 1, double bytes = 0);
  // Read and written once.
  void add_copy(double bytes);
  // The same of single elements, where their number takes the time and not their size.
  void add_elements(double elements, double launches = 1);
  double microseconds() const { return microseconds_; }
  Effort effort() const;

 private:
  double peak_, bandwidth_;  // operations, bytes a microsecond
  double microseconds_ = 0, launches_ = 0;
};

// One kernel or some, of which a plan says the time on the paced GPU.
Effort paced(const ConvPass& pass, double microseconds, double launches, const Machine& machine);
// One kernel, of which a plan says the cycles, each of them 128 products of every multiprocessor's FP32
// units.
Effort of_cycles(const ConvPass& pass, double cycles, const Machine& machine);

// For kernels that multiply 16-bit types on FP32 units: operations that take tensor cores as long.
Effort on_fp32_units(Effort effort, const problem::Pass& pass, const Machine& machine);

// Products and additions of a convolution, two for each pair of weight and output.
double operations_of(const ConvPass& pass);
// The pairs whose place lies inside x.
double live_terms(const ConvPass& pass);
double bytes_of(const PassTensor& tensor, const Sizes5& sizes);
double bytes_of(const ConvPass& pass);  // of all three tensors

}  // namespace retrograd::engines::cuda

// SPDX-License-Identifier: Apache-2.0
// The loops of the reference, one function a pass, each giving the sum of one result element.
#pragma once

#include "engines/engine.h"
#include "engines/reference/element.h"

namespace retrograd::engines::reference {

// Each names the index of the result element it computes. Padded taps are skipped, never multiplied by zero.
double forward_element(const problem::ConvPass& pass, const Source& x, const Source& w,
                       const Index5& y_index);
double grad_input_element(const problem::ConvPass& pass, const Source& y, const Source& w,
                          const Index5& x_index);
double grad_weight_element(const problem::ConvPass& pass, const Source& x, const Source& y,
                           const Index5& w_index);
double grad_bias_element(const problem::BiasPass& pass, const Source& grad_output, int64_t channel);
double avgpool_element(const problem::AvgPoolPass& pass, const Source& y, const Index5& x_index);
double avgpool_forward_element(const problem::AvgPoolPass& pass, const Source& x, const Index5& y_index);

// How the elements of a pass's result are indexed, and the most terms that one of them adds.
struct ResultShape {
  Index5 sizes;
  int64_t terms;
};
ResultShape result_shape(const problem::ConvPass& pass);
ResultShape result_shape(const problem::BiasPass& pass);
ResultShape result_shape(const problem::AvgPoolPass& pass);

// One element of a pass's result, in double.
double exact_element(const problem::Pass& pass, const Bindings& bindings, const Index5& index);

}  // namespace retrograd::engines::reference

// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h, written as they stand there.
#include "engines/reference/passes.h"

#include <algorithm>
#include <array>

#include "base/checked.h"

namespace retrograd::engines::reference {

using problem::ConvPassKind;
using problem::Range;

double forward_element(const problem::ConvPass& p, const Source& x, const Source& w, const Index5& y_index) {
  const auto& [wd, wh, ww] = p.axes;
  const int64_t channels = p.x_channels_per_group();
  const int64_t first = y_index.c / p.y_channels_per_group() * channels;
  const Range td = live_taps(wd, y_index.d), th = live_taps(wh, y_index.h), tw = live_taps(ww, y_index.w);
  double sum = 0;
  for (int64_t c = 0; c < channels; ++c)
    for (int64_t d = td.begin; d < td.end; ++d)
      for (int64_t h = th.begin; h < th.end; ++h)
        for (int64_t k = tw.begin; k < tw.end; ++k)
          sum += x({y_index.n, first + c, position(wd, y_index.d, d), position(wh, y_index.h, h),
                    position(ww, y_index.w, k)}) *
                 w({y_index.c, c, d, h, k});
  return sum;
}

double grad_input_element(const problem::ConvPass& p, const Source& y, const Source& w,
                          const Index5& x_index) {
  const auto& [wd, wh, ww] = p.axes;
  const int64_t channels = p.y_channels_per_group();
  const int64_t first = x_index.c / p.x_channels_per_group() * channels;
  const int64_t c_in_group = x_index.c % p.x_channels_per_group();
  double sum = 0;
  for (int64_t d = 0; d < wd.kernel; ++d) {
    const auto od = output_reading(wd, x_index.d, d);
    if (!od) continue;
    for (int64_t h = 0; h < wh.kernel; ++h) {
      const auto oh = output_reading(wh, x_index.h, h);
      if (!oh) continue;
      for (int64_t k = 0; k < ww.kernel; ++k) {
        const auto ow = output_reading(ww, x_index.w, k);
        if (!ow) continue;
        for (int64_t c = first; c < first + channels; ++c)
          sum += y({x_index.n, c, *od, *oh, *ow}) * w({c, c_in_group, d, h, k});
      }
    }
  }
  return sum;
}

double grad_weight_element(const problem::ConvPass& p, const Source& x, const Source& y,
                           const Index5& w_index) {
  const auto& [wd, wh, ww] = p.axes;
  const auto& [y_channel, c_in_group, d, h, k] = w_index;
  const int64_t x_channel = y_channel / p.y_channels_per_group() * p.x_channels_per_group() + c_in_group;
  const Range rd = live_outputs(wd, d), rh = live_outputs(wh, h), rw = live_outputs(ww, k);
  double sum = 0;
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t od = rd.begin; od < rd.end; ++od)
      for (int64_t oh = rh.begin; oh < rh.end; ++oh)
        for (int64_t ow = rw.begin; ow < rw.end; ++ow)
          sum += x({n, x_channel, position(wd, od, d), position(wh, oh, h), position(ww, ow, k)}) *
                 y({n, y_channel, od, oh, ow});
  return sum;
}

double grad_bias_element(const problem::BiasPass& p, const Source& grad_output, int64_t channel) {
  double sum = 0;
  for (int64_t n = 0; n < p.batch; ++n)
    for (int64_t d = 0; d < p.spatial[0]; ++d)
      for (int64_t h = 0; h < p.spatial[1]; ++h)
        for (int64_t w = 0; w < p.spatial[2]; ++w) sum += grad_output({n, channel, d, h, w});
  return sum;
}

// A window that holds a place counts at least that one: its divisor is not 0.
double divisor_of(const problem::AvgPoolPass& p, int64_t d, int64_t h, int64_t w) {
  if (p.divisor_override != 0) return static_cast<double>(p.divisor_override);
  double product = 1;
  const std::array<int64_t, 3> output{d, h, w};
  for (size_t axis = 0; axis < 3; ++axis)
    product *= static_cast<double>(pooled_count(p.axes[axis], output[axis], p.count_include_pad));
  return product;
}

double avgpool_element(const problem::AvgPoolPass& p, const Source& y, const Index5& index) {
  const auto& [wd, wh, ww] = p.axes;
  const Range rd = outputs_pooling(wd, index.d), rh = outputs_pooling(wh, index.h),
              rw = outputs_pooling(ww, index.w);
  double sum = 0;
  for (int64_t d = rd.begin; d < rd.end; ++d)
    for (int64_t h = rh.begin; h < rh.end; ++h)
      for (int64_t w = rw.begin; w < rw.end; ++w)
        sum += y({index.n, index.c, d, h, w}) / divisor_of(p, d, h, w);
  return sum;
}

double avgpool_forward_element(const problem::AvgPoolPass& p, const Source& x, const Index5& index) {
  const Range rd = pooled_positions(p.axes[0], index.d), rh = pooled_positions(p.axes[1], index.h),
              rw = pooled_positions(p.axes[2], index.w);
  double sum = 0;
  for (int64_t d = rd.begin; d < rd.end; ++d)
    for (int64_t h = rh.begin; h < rh.end; ++h)
      for (int64_t w = rw.begin; w < rw.end; ++w) sum += x({index.n, index.c, d, h, w});
  // A window without a place may count none.
  const double divisor = divisor_of(p, index.d, index.h, index.w);
  return divisor == 0 ? 0 : sum / divisor;
}

ResultShape result_shape(const problem::ConvPass& p) {
  const auto& [wd, wh, ww] = p.axes;
  const int64_t taps = wd.kernel * wh.kernel * ww.kernel;
  switch (p.kind) {
    case ConvPassKind::kForward:
      return {{p.batch, p.y_channels, wd.y, wh.y, ww.y}, p.x_channels_per_group() * taps};
    case ConvPassKind::kGradInput:
      return {{p.batch, p.x_channels, wd.x, wh.x, ww.x}, p.y_channels_per_group() * taps};
    case ConvPassKind::kGradWeight:
      break;
  }
  return {{p.y_channels, p.x_channels_per_group(), wd.kernel, wh.kernel, ww.kernel},
          p.batch * wd.y * wh.y * ww.y};
}

ResultShape result_shape(const problem::BiasPass& p) {
  return {{1, p.channels, 1, 1, 1}, p.reduction_length()};
}

ResultShape result_shape(const problem::AvgPoolPass& p) {
  const auto& [d, h, w] = p.axes;
  int64_t places = 1, windows = 1;  // of a window; that hold one element
  for (const problem::PoolWindow& axis : p.axes) {
    places *= std::min(axis.kernel, axis.x);
    windows *= std::min(ceil_div(axis.kernel, axis.stride), axis.y);
  }
  if (p.forward) return {{p.batch, p.channels, d.y, h.y, w.y}, places};
  return {{p.batch, p.channels, p.axes[0].x, p.axes[1].x, p.axes[2].x}, windows};
}

double exact_element(const problem::Pass& pass, const Bindings& bindings, const Index5& index) {
  const auto source = [&](const problem::PassTensor& tensor, OperandRounding rounding) {
    return Source(tensor, bindings[tensor.operand], rounding);
  };
  if (const auto* conv = std::get_if<problem::ConvPass>(&pass)) {
    const Source x = source(conv->x, conv->rounding), y = source(conv->y, conv->rounding),
                 w = source(conv->w, conv->rounding);
    const double bias = conv->bias ? source(*conv->bias, OperandRounding::kNone)({0, index.c, 0, 0, 0}) : 0.0;
    return conv->kind == ConvPassKind::kForward     ? bias + forward_element(*conv, x, w, index)
           : conv->kind == ConvPassKind::kGradInput ? bias + grad_input_element(*conv, y, w, index)
                                                    : grad_weight_element(*conv, x, y, index);
  }
  if (const auto* bias = std::get_if<problem::BiasPass>(&pass))
    return grad_bias_element(*bias, source(bias->grad_output, OperandRounding::kNone), index.c);
  const auto& pool = std::get<problem::AvgPoolPass>(pass);
  if (pool.forward) return avgpool_forward_element(pool, source(pool.x, OperandRounding::kNone), index);
  return avgpool_element(pool, source(pool.y, OperandRounding::kNone), index);
}

}  // namespace retrograd::engines::reference

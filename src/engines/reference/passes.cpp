// SPDX-License-Identifier: Apache-2.0
// The sums of problem/pass.h, written as they stand there.
#include "engines/reference/passes.h"

namespace retrograd::engines::reference {

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

double avgpool_element(const problem::AvgPoolPass& p, const Source& grad_output, const Index5& index) {
  const auto& [wd, wh, ww] = p.axes;
  const Range rd = outputs_pooling(wd, index.d), rh = outputs_pooling(wh, index.h),
              rw = outputs_pooling(ww, index.w);
  const auto count = [&](const problem::PoolWindow& window, int64_t output) {
    return static_cast<double>(pooled_count(window, output, p.count_include_pad));
  };
  double sum = 0;
  for (int64_t d = rd.begin; d < rd.end; ++d)
    for (int64_t h = rh.begin; h < rh.end; ++h)
      for (int64_t w = rw.begin; w < rw.end; ++w) {
        // A window that holds this element counts at least one place, so this never divides by zero.
        const double divisor = p.divisor_override != 0 ? static_cast<double>(p.divisor_override)
                                                       : count(wd, d) * count(wh, h) * count(ww, w);
        sum += grad_output({index.n, index.c, d, h, w}) / divisor;
      }
  return sum;
}

}  // namespace retrograd::engines::reference

// SPDX-License-Identifier: Apache-2.0
// Scatters every term of the forward operator into the gradients it contributes to.
#include "infini/formulas.h"

#include <algorithm>

namespace retrograd::infini_test {
namespace {

int64_t volume(const Axes& a) { return a[0] * a[1] * a[2]; }

template <class Visit>
void for_each(const Axes& extent, Visit visit) {
  for (int64_t d = 0; d < extent[0]; ++d)
    for (int64_t h = 0; h < extent[1]; ++h)
      for (int64_t w = 0; w < extent[2]; ++w) visit(Axes{d, h, w});
}

int64_t linear(const Axes& at, const Axes& extent) { return (at[0] * extent[1] + at[1]) * extent[2] + at[2]; }

bool inside(const Axes& at, const Axes& extent) {
  for (size_t i = 0; i < 3; ++i)
    if (at[i] < 0 || at[i] >= extent[i]) return false;
  return true;
}

}  // namespace

Axes axes(const std::vector<size_t>& shape, int64_t fill) {
  Axes result{fill, fill, fill};
  for (size_t i = 2; i < shape.size(); ++i) result[i + 3 - shape.size()] = static_cast<int64_t>(shape[i]);
  return result;
}

Axes axes(const std::vector<int>& values, int64_t fill) {
  Axes result{fill, fill, fill};
  for (size_t i = 0; i < values.size(); ++i) result[i + 3 - values.size()] = values[i];
  return result;
}

ConvGradients gradients(const ConvFormula& f, const std::vector<double>& grad_output,
                        const std::vector<double>& input, const std::vector<double>& weight) {
  const Axes in = axes(f.input, 1), out = axes(f.grad_output, 1), kernel = axes(f.weight, 1);
  const auto batch = static_cast<int64_t>(f.input[0]), c_in = static_cast<int64_t>(f.input[1]);
  const auto c_out = static_cast<int64_t>(f.grad_output[1]), second = static_cast<int64_t>(f.weight[1]);
  const int64_t in_group = c_in / f.groups, out_group = c_out / f.groups;
  ConvGradients g{std::vector<double>(input.size()), std::vector<double>(weight.size()),
                  std::vector<double>(static_cast<size_t>(c_out))};
  // The side the window steps over, and the side it lands on.
  const Axes& steps = f.transposed ? in : out;
  const Axes& landed = f.transposed ? out : in;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < c_out; ++o) {
      for_each(out, [&](const Axes& p) {
        g.bias[static_cast<size_t>(o)] +=
            grad_output[static_cast<size_t>((n * c_out + o) * volume(out) + linear(p, out))];
      });
      for (int64_t j = 0; j < in_group; ++j) {
        const int64_t i = o / out_group * in_group + j;
        const int64_t filter = f.transposed ? i * second + o % out_group : o * second + j;
        for_each(steps, [&](const Axes& p) {
          for_each(kernel, [&](const Axes& t) {
            Axes q;
            for (size_t a = 0; a < 3; ++a) q[a] = p[a] * f.stride[a] - f.pad[a] + t[a] * f.dilation[a];
            if (!inside(q, landed)) return;
            const Axes &at_in = f.transposed ? p : q, &at_out = f.transposed ? q : p;
            const auto x = static_cast<size_t>((n * c_in + i) * volume(in) + linear(at_in, in));
            const auto y = static_cast<size_t>((n * c_out + o) * volume(out) + linear(at_out, out));
            const auto w = static_cast<size_t>(filter * volume(kernel) + linear(t, kernel));
            g.input[x] += grad_output[y] * weight[w];
            g.weight[w] += grad_output[y] * input[x];
          });
        });
      }
    }
  return g;
}

std::vector<double> grad_input(const PoolFormula& f, const std::vector<double>& grad_output) {
  const Axes in = axes(f.input, 1), out = axes(f.grad_output, 1);
  const auto planes = static_cast<int64_t>(f.input[0] * f.input[1]);
  std::vector<double> result(static_cast<size_t>(planes * volume(in)));
  for (int64_t plane = 0; plane < planes; ++plane)
    for_each(out, [&](const Axes& p) {
      int64_t counted = 1;
      Axes first, extent;
      for (size_t a = 0; a < 3; ++a) {
        const int64_t start = p[a] * f.stride[a] - f.pad[a],
                      end = std::min(start + f.kernel[a], in[a] + f.pad[a]);
        first[a] = std::max<int64_t>(start, 0);
        extent[a] = std::max<int64_t>(std::min(end, in[a]) - first[a], 0);
        counted *= f.count_include_pad ? std::max<int64_t>(end - start, 0) : extent[a];
      }
      const int64_t divisor = f.divisor_override != 0 ? f.divisor_override : counted;
      const double share = grad_output[static_cast<size_t>(plane * volume(out) + linear(p, out))] /
                           static_cast<double>(divisor);
      for_each(extent, [&](const Axes& t) {
        const Axes q{first[0] + t[0], first[1] + t[1], first[2] + t[2]};
        result[static_cast<size_t>(plane * volume(in) + linear(q, in))] += share;
      });
    });
  return result;
}

size_t conv_size(size_t in, size_t kernel, int pad, int stride, int dilation) {
  const int64_t span = dilation * (static_cast<int64_t>(kernel) - 1) + 1;
  return static_cast<size_t>((static_cast<int64_t>(in) + 2 * pad - span) / stride + 1);
}

size_t pool_size(size_t in, size_t kernel, size_t stride, size_t pad, bool ceil_mode) {
  const size_t room = in + 2 * pad - kernel;
  size_t size = room / stride + 1;
  if (ceil_mode && room % stride != 0 && size * stride < in + pad) ++size;
  return size;
}

}  // namespace retrograd::infini_test

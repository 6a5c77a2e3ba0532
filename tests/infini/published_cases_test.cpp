// SPDX-License-Identifier: Apache-2.0
// The published client cases of the infiniop specification, section 7, in all three element types.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "infini/client.h"
#include "infini/formulas.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

// Section 7: |difference| ≤ tolerance + tolerance · |expected|.
constexpr double kSection7ConvF16 = 1e-3, kSection7ConvF32 = 1e-4, kSection7ConvBF16 = 1e-2;
constexpr double kSection7PoolF16 = 1e-3, kSection7PoolF32 = 1e-5, kSection7PoolBF16 = 1e-2;
// Section 7: x, w and b are scaled by this, grad_output is not.
constexpr double kSection7Scale = 0.01;

constexpr infiniDtype_t kTypes[] = {INFINI_DTYPE_F16, INFINI_DTYPE_F32, INFINI_DTYPE_BF16};

double conv_tolerance(infiniDtype_t dtype) {
  return dtype == INFINI_DTYPE_F16   ? kSection7ConvF16
         : dtype == INFINI_DTYPE_F32 ? kSection7ConvF32
                                     : kSection7ConvBF16;
}
double pool_tolerance(infiniDtype_t dtype) {
  return dtype == INFINI_DTYPE_F16   ? kSection7PoolF16
         : dtype == INFINI_DTYPE_F32 ? kSection7PoolF32
                                     : kSection7PoolBF16;
}

void expect_close(const std::vector<double>& actual, const std::vector<double>& expected, double tolerance,
                  const char* what) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i)
    ASSERT_LE(std::abs(actual[i] - expected[i]), tolerance + tolerance * std::abs(expected[i]))
        << what << " element " << i << ": " << actual[i] << ", expected " << expected[i];
}

class Section7 : public testing::Test {
 protected:
  Tensor random(const View& view, double scale) {
    Tensor tensor(view);
    tensor.fill([&](size_t) { return normal_(engine_) * scale; });
    return tensor;
  }

 private:
  std::mt19937 engine_{20240607};
  std::normal_distribution<double> normal_;
};

struct ConvCase {
  std::vector<size_t> x, w;
  std::vector<int> pads, strides, dilations;
  size_t groups;
};
const ConvCase kConvCases[] = {
    {{2, 4, 16}, {8, 4, 5}, {0}, {1}, {1}, 1},
    {{2, 4, 32}, {8, 4, 3}, {1}, {2}, {1}, 1},
    {{1, 2, 64}, {4, 2, 7}, {2}, {3}, {1}, 1},
    {{2, 3, 10, 10}, {6, 3, 3, 3}, {0, 1}, {1, 2}, {2, 2}, 1},
    {{1, 2, 28, 14}, {4, 2, 5, 3}, {1, 2}, {3, 2}, {1, 1}, 1},
    {{1, 2, 5, 5, 5}, {4, 2, 2, 2, 2}, {0, 1, 1}, {1, 1, 1}, {1, 1, 1}, 1},
    {{2, 4, 16}, {4, 2, 3}, {1}, {1}, {1}, 2},
};

TEST_F(Section7, ConvBackwardOfEveryPublishedCaseInEveryType) {
  for (size_t number = 0; number < std::size(kConvCases); ++number)
    for (infiniDtype_t dtype : kTypes) {
      SCOPED_TRACE(testing::Message() << "case " << number << ", dtype " << dtype);
      const ConvCase& c = kConvCases[number];
      std::vector<size_t> y{c.x[0], c.w[0]};
      for (size_t i = 0; i < c.pads.size(); ++i)
        y.push_back(conv_size(c.x[i + 2], c.w[i + 2], c.pads[i], c.strides[i], c.dilations[i]));
      const Tensor x = random({c.x, {}, dtype}, kSection7Scale), w = random({c.w, {}, dtype}, kSection7Scale);
      const Tensor grad_output = random({y, {}, dtype}, 1);
      const Operator conv = make(ConvCall{grad_output.view(), x.view(), w.view(), View{{c.w[0]}, {}, dtype},
                                          c.pads, c.strides, c.dilations, c.groups});
      size_t bytes = 0;
      ASSERT_EQ(infiniopGetConvBackwardWorkspaceSize(conv.get(), &bytes), INFINI_STATUS_SUCCESS);
      std::vector<char> workspace(bytes);
      Tensor grad_input(x.view()), grad_weight(w.view()), grad_bias({{c.w[0]}, {}, dtype});
      ASSERT_EQ(
          infiniopConvBackward(conv.get(), workspace.data(), bytes, grad_input.data(), grad_weight.data(),
                               grad_bias.data(), grad_output.data(), x.data(), w.data(), nullptr),
          INFINI_STATUS_SUCCESS)
          << retrogradGetLastError();
      const ConvFormula formula{c.x,
                                c.w,
                                y,
                                axes(c.strides, 1),
                                axes(c.pads, 0),
                                axes(c.dilations, 1),
                                static_cast<int64_t>(c.groups)};
      const ConvGradients expected = gradients(formula, grad_output.values(), x.values(), w.values());
      expect_close(grad_input.values(), expected.input, conv_tolerance(dtype), "grad_input");
      expect_close(grad_weight.values(), expected.weight, conv_tolerance(dtype), "grad_weight");
      expect_close(grad_bias.values(), expected.bias, conv_tolerance(dtype), "grad_bias");
    }
}

struct PoolCase {
  std::vector<size_t> x, k, s, p;
  bool ceil_mode;
};
const PoolCase kPoolCases[] = {
    {{1, 3, 99}, {4}, {3}, {1}, true},
    {{3, 2, 77}, {6}, {4}, {0}, true},
    {{2, 16, 256}, {5}, {2}, {2}, false},
    {{2, 4, 80, 120}, {3, 5}, {1, 2}, {1, 2}, false},
    {{1, 1, 33, 33}, {4, 4}, {3, 3}, {1, 1}, true},
    {{2, 5, 77, 89}, {5, 3}, {4, 2}, {2, 1}, true},
    {{1, 1, 27, 27, 27}, {4, 4, 4}, {3, 3, 3}, {1, 1, 1}, true},
    {{2, 2, 33, 45, 39}, {5, 3, 4}, {3, 2, 3}, {2, 1, 1}, true},
    {{2, 2, 40, 32, 56}, {5, 3, 7}, {2, 1, 3}, {2, 1, 3}, false},
};

Axes to_axes(const std::vector<size_t>& values, int64_t fill) {
  return axes(std::vector<int>(values.begin(), values.end()), fill);
}

TEST_F(Section7, AvgPoolBackwardOfEveryPublishedCaseInEveryType) {
  for (size_t number = 0; number < std::size(kPoolCases); ++number)
    for (infiniDtype_t dtype : kTypes) {
      SCOPED_TRACE(testing::Message() << "case " << number << ", dtype " << dtype);
      const PoolCase& c = kPoolCases[number];
      std::vector<size_t> y{c.x[0], c.x[1]};
      for (size_t i = 0; i < c.k.size(); ++i)
        y.push_back(pool_size(c.x[i + 2], c.k[i], c.s[i], c.p[i], c.ceil_mode));
      const Tensor grad_output = random({y, {}, dtype}, 1);
      const View x{c.x, {}, dtype};
      const Operator pool = make(PoolCall{x, grad_output.view(), x, c.k, c.s, c.p, c.ceil_mode});
      size_t bytes = 0;
      ASSERT_EQ(infiniopGetAvgPoolBackwardWorkspaceSize(pool.get(), &bytes), INFINI_STATUS_SUCCESS);
      std::vector<char> workspace(bytes);
      Tensor result(x);
      ASSERT_EQ(infiniopAvgPoolBackward(pool.get(), workspace.data(), bytes, result.data(),
                                        grad_output.data(), nullptr, nullptr),
                INFINI_STATUS_SUCCESS)
          << retrogradGetLastError();
      const PoolFormula formula{c.x, y, to_axes(c.k, 1), to_axes(c.s, 1), to_axes(c.p, 0)};
      expect_close(result.values(), grad_input(formula, grad_output.values()), pool_tolerance(dtype),
                   "grad_input");
    }
}

}  // namespace
}  // namespace retrograd::infini_test

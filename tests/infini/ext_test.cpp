// SPDX-License-Identifier: Apache-2.0
// retrograd/infiniop_ext.h: transposed convolutions, output padding, asymmetric pads, divisors of pooling.
#include <gtest/gtest.h>

#include <cstdint>

#include "infini/client.h"
#include "infini/formulas.h"
#include "retrograd/infiniop_ext.h"
#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

using Longs = std::vector<int64_t>;

constexpr const char* kCreateConv = "retrogradInfiniopCreateConvBackwardDescriptor";
constexpr const char* kCreatePool = "retrogradInfiniopCreateAvgPoolBackwardDescriptor";

const int64_t* address(const Longs& values) { return values.empty() ? nullptr : values.data(); }

struct ExtConv {
  std::vector<size_t> grad_output, input, weight;
  Longs pads, strides, dilations, output_padding;  // empty: null is passed
  bool transposed = false;
  int64_t groups = 1;

  infiniStatus_t create(infiniopConvBackwardDescriptor_t* out) const {
    const Handle handle;
    const TensorDescriptor y({grad_output}), x({input}), w({weight});
    return retrogradInfiniopCreateConvBackwardDescriptor(
        handle.get(), out, y.get(), x.get(), w.get(), nullptr, address(pads), pads.size(), address(strides),
        address(dilations), transposed, address(output_padding), groups);
  }
};

Axes in_front(const Longs& pads, size_t axes_count) {
  std::vector<int> values;
  for (size_t i = 0; i < axes_count && !pads.empty(); ++i)
    values.push_back(static_cast<int>(pads[pads.size() == axes_count ? i : 2 * i]));
  return axes(values, 0);
}

void expect_right(const ExtConv& c) {
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  ASSERT_EQ(c.create(&descriptor), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  const Operator destroyer(descriptor, infiniopDestroyConvBackwardDescriptor);
  Tensor y({c.grad_output}), x({c.input}), w({c.weight}), gx({c.input}), gw({c.weight}),
      gb({{c.grad_output[1]}});
  y.fill(small_integer);
  x.fill([](size_t i) { return small_integer(i + 2); });
  w.fill([](size_t i) { return small_integer(i + 4); });
  ASSERT_EQ(infiniopConvBackward(descriptor, room().data(), room().size(), gx.data(), gw.data(), gb.data(),
                                 y.data(), x.data(), w.data(), nullptr),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
  const ConvFormula formula{c.input,
                            c.weight,
                            c.grad_output,
                            axes(std::vector<int>(c.strides.begin(), c.strides.end()), 1),
                            in_front(c.pads, c.input.size() - 2),
                            axes(std::vector<int>(c.dilations.begin(), c.dilations.end()), 1),
                            c.groups,
                            c.transposed};
  const ConvGradients expected = gradients(formula, y.values(), x.values(), w.values());
  EXPECT_EQ(gx.values(), expected.input);
  EXPECT_EQ(gw.values(), expected.weight);
  EXPECT_EQ(gb.values(), expected.bias);
}

TEST(ExtConvBackward, DefaultsToAPlainConvolution) {
  expect_right({{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {}, {}, {}});
}

TEST(ExtConvBackward, TakesPadsInFrontAndBehindInEveryDimension) {
  expect_right({{1, 2, 7}, {1, 2, 6}, {2, 2, 3}, {1, 2}, {}, {}, {}});
  expect_right({{1, 2, 4, 8}, {1, 2, 6, 6}, {2, 2, 3, 3}, {0, 3, 2, 2}, {2, 1}, {}, {}});
  expect_right({{1, 1, 3, 4, 6}, {1, 1, 3, 3, 4}, {1, 1, 2, 2, 2}, {1, 0, 0, 2, 1, 2}, {}, {}, {}});
}

TEST(ExtConvBackward, ServesTransposedConvolutionsWithOutputPadding) {
  // (in − 1)·stride − pads + dilation·(k − 1) + 1 + output_padding
  expect_right({{1, 2, 9}, {1, 3, 4}, {3, 2, 4}, {1}, {2}, {}, {1}, true});
  expect_right({{2, 2, 8, 10}, {2, 4, 4, 3}, {4, 1, 3, 3}, {1, 1, 0, 0}, {2, 3}, {1, 1}, {1, 1}, true, 2});
  expect_right({{1, 1, 4, 7, 5}, {1, 2, 3, 4, 2}, {2, 1, 2, 1, 2}, {}, {1, 2, 3}, {1, 1, 1}, {}, true});
}

TEST(ExtConvBackward, ExplainsWhatItRefuses) {
  struct Rule {
    ExtConv call;
    infiniStatus_t status;
    std::vector<std::string> fragments;
  };
  const Rule rules[] = {
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {0, 0, 0}, {}, {}, {}},
       INFINI_STATUS_BAD_PARAM,
       {"pads_count is 3", "1 or 2"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {0, -1}, {}, {}, {}}, INFINI_STATUS_BAD_PARAM, {"pads[1] is -1"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {0}, {}, {}}, INFINI_STATUS_BAD_PARAM, {"strides[0] is 0"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {}, {INT64_MIN}, {}},
       INFINI_STATUS_BAD_PARAM,
       {"dilations[0] is -9223372036854775808"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {}, {}, {1}},
       INFINI_STATUS_BAD_PARAM,
       {"output_padding[0] is 1", "not transposed"}},
      {{{1, 2, 10}, {1, 3, 4}, {3, 2, 4}, {1}, {2}, {}, {2}, true},
       INFINI_STATUS_BAD_PARAM,
       {"output_padding[0] is 2", "0 to 1"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {}, {}, {}, false, 2}, INFINI_STATUS_BAD_PARAM, {"groups is 2"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {}, {}, {}, false, 0}, INFINI_STATUS_BAD_PARAM, {"groups is 0"}},
      {{{2, 3, 4}, {2, 2, 6}, {3, 2, 3}, {}, {}, {}, {}, false, INT64_MIN},
       INFINI_STATUS_BAD_PARAM,
       {"groups is -"}},
      {{{1, 2, 8}, {1, 3, 4}, {3, 2, 4}, {1}, {2}, {}, {1}, true},
       INFINI_STATUS_BAD_TENSOR_SHAPE,
       {"grad_output_desc.shape[2] is 8", "expected 9"}},
      {{{1, 2, 8}, {1, 3, 4}, {4, 2, 4}, {1}, {2}, {}, {}, true},
       INFINI_STATUS_BAD_TENSOR_SHAPE,
       {"weight_desc.shape[0] is 4", "expected 3"}},
      {{{1, 2, 4}, {1, 3, INT64_MAX}, {2, 3, 4}, {INT64_MAX, INT64_MAX}, {}, {}, {}},
       INFINI_STATUS_BAD_TENSOR_SHAPE,
       {"64 bits"}},
  };
  for (const Rule& rule : rules) {
    SCOPED_TRACE(rule.fragments[0]);
    infiniopConvBackwardDescriptor_t descriptor = nullptr;
    const infiniStatus_t status = rule.call.create(&descriptor);
    expect_refused(status, rule.status, kCreateConv, rule.fragments);
    EXPECT_EQ(descriptor, nullptr);
  }
}

TEST(ExtConvBackward, ReadsNoPadsWhoseCountCannotBe) {
  const Handle handle;
  const TensorDescriptor y({{2, 3, 4}}), x({{2, 2, 6}}), w({{3, 2, 3}}), flat({{2, 2}});
  const int64_t pads[1] = {0};
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  const auto create = [&](const TensorDescriptor& input, const int64_t* list, size_t pads_count) {
    return retrogradInfiniopCreateConvBackwardDescriptor(handle.get(), &descriptor, y.get(), input.get(),
                                                         w.get(), nullptr, list, pads_count, nullptr, nullptr,
                                                         false, nullptr, 1);
  };
  expect_refused(create(x, pads, SIZE_MAX), INFINI_STATUS_BAD_PARAM, kCreateConv,
                 {"pads_count is 18446744073709551615"});
  expect_refused(create(x, nullptr, 1), INFINI_STATUS_BAD_PARAM, kCreateConv,
                 {"pads is null", "pads_count 1"});
  expect_refused(create(flat, pads, SIZE_MAX), INFINI_STATUS_BAD_TENSOR_SHAPE, kCreateConv, {"rank 2"});
}

struct ExtPool {
  std::vector<size_t> grad_output, input;
  Longs kernel, strides, pads;
  bool ceil_mode = false, count_include_pad = true;
  int64_t divisor_override = 0;

  infiniStatus_t create(infiniopAvgPoolBackwardDescriptor_t* out) const {
    const Handle handle;
    const TensorDescriptor y({grad_output}), x({input});
    return retrogradInfiniopCreateAvgPoolBackwardDescriptor(handle.get(), out, x.get(), y.get(), x.get(),
                                                            address(kernel), address(strides), address(pads),
                                                            ceil_mode, count_include_pad, divisor_override);
  }
};

std::vector<double> run_with_ones(const ExtPool& c) {
  infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
  EXPECT_EQ(c.create(&descriptor), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  const Operator destroyer(descriptor, infiniopDestroyAvgPoolBackwardDescriptor);
  Tensor y({c.grad_output}), gx({c.input});
  y.fill([](size_t) { return 1; });
  EXPECT_EQ(infiniopAvgPoolBackward(descriptor, room().data(), room().size(), gx.data(), y.data(), nullptr,
                                    nullptr),
            INFINI_STATUS_SUCCESS);
  return gx.values();
}

TEST(ExtAvgPoolBackward, CountsPaddingOnlyWhenAskedTo) {
  ExtPool pool{{1, 1, 3}, {1, 1, 4}, {2}, {2}, {1}};
  EXPECT_EQ(run_with_ones(pool), (std::vector<double>{0.5, 0.5, 0.5, 0.5}));
  pool.count_include_pad = false;
  EXPECT_EQ(run_with_ones(pool), (std::vector<double>{1, 0.5, 0.5, 1}));
}

TEST(ExtAvgPoolBackward, DividesByTheOverride) {
  ExtPool pool{{1, 1, 3}, {1, 1, 4}, {2}, {2}, {1}};
  pool.divisor_override = 4;
  EXPECT_EQ(run_with_ones(pool), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
  pool.count_include_pad = false;
  EXPECT_EQ(run_with_ones(pool), (std::vector<double>{0.25, 0.25, 0.25, 0.25}));
}

TEST(ExtAvgPoolBackward, DefaultsStridesToTheKernelAndPadsToZero) {
  EXPECT_EQ(run_with_ones({{1, 1, 2, 1}, {1, 1, 4, 2}, {2, 2}, {}, {}}), std::vector<double>(8, 0.25));
}

TEST(ExtAvgPoolBackward, ExplainsWhatItRefuses) {
  infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
  const auto refused = [&](const ExtPool& pool, infiniStatus_t status,
                           std::initializer_list<const char*> fragments) {
    expect_refused(pool.create(&descriptor), status, kCreatePool, fragments);
    EXPECT_EQ(descriptor, nullptr);
  };
  refused({{1, 1, 2}, {1, 1, 4}, {}, {2}, {0}}, INFINI_STATUS_BAD_PARAM, {"kernel_size is null"});
  refused({{1, 1, 2}, {1, 1, 4}, {0}, {2}, {0}}, INFINI_STATUS_BAD_PARAM, {"kernel_size[0] is 0"});
  refused({{1, 1, 2}, {1, 1, 4}, {2}, {-2}, {0}}, INFINI_STATUS_BAD_PARAM, {"strides[0] is -2"});
  refused({{1, 1, 2}, {1, 1, 4}, {2}, {2}, {INT64_MIN}}, INFINI_STATUS_BAD_PARAM,
          {"pads[0] is -9223372036854775808"});
  refused({{1, 1, 3}, {1, 1, 4}, {2}, {2}, {0}}, INFINI_STATUS_BAD_TENSOR_SHAPE,
          {"grad_output_desc.shape[2] is 3", "expected 2"});
}

}  // namespace
}  // namespace retrograd::infini_test

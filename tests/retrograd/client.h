// SPDX-License-Identifier: Apache-2.0
// A convolution, a (T,B,C) convolution and a pooling as callers of our interface hold them: tensors with
// data, in FP32.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "retrograd/retrograd.h"

namespace retrograd::test {

struct Tensor {
  Tensor() = default;
  // Strides are those of a dense tensor unless others are given; `elements` is the room for them.
  Tensor(std::vector<int64_t> sizes, int64_t first = 1) : shape(std::move(sizes)) {
    int64_t count = 1;
    for (const int64_t size : shape) count *= size;
    for (int64_t i = 0; i < count; ++i) data.push_back(static_cast<float>((first + 3 * i) % 5 - 2));
  }
  retrogradTensor_t view() {
    return {data.data(),
            RETROGRAD_F32,
            static_cast<int32_t>(shape.size()),
            shape.data(),
            strides.empty() ? nullptr : strides.data(),
            {RETROGRAD_CPU, 0}};
  }
  std::vector<int64_t> shape, strides;
  std::vector<float> data;
};

// grad_output, input, weight, grad_input, grad_weight, grad_bias, bias, output, and the problem that points
// at them.
class Client {
 public:
  Client(retrogradOperation_t operation, std::vector<Tensor> given) : tensors(std::move(given)) {
    retrogradInitProblem(&problem, sizeof problem, operation);
    refresh();
  }
  // After tensors were changed.
  void refresh() {
    const retrogradTensor_t** const fields[] = {
        &problem.grad_output, &problem.input,     &problem.weight, &problem.grad_input,
        &problem.grad_weight, &problem.grad_bias, &problem.bias,   &problem.output};
    for (size_t i = 0; i < tensors.size(); ++i) {
      views[i] = tensors[i].view();
      *fields[i] = tensors[i].shape.empty() ? nullptr : &views[i];
    }
  }
  retrogradAddresses_t addresses() {
    const auto data = [&](size_t i) { return i < tensors.size() ? tensors[i].data.data() : nullptr; };
    return {data(0), data(1), data(2), data(3), data(4), data(5), data(6), data(7)};
  }

  std::vector<Tensor> tensors;
  retrogradTensor_t views[8];
  retrogradProblem_t problem;
};

inline const int64_t kOne[] = {1}, kTwo[] = {2}, kThree[] = {3};

inline Client conv() {
  Client client(RETROGRAD_CONV_BACKWARD,
                {Tensor({2, 4, 6, 5}), Tensor({2, 3, 6, 5}, 2), Tensor({4, 3, 3, 3}, 3), Tensor({2, 3, 6, 5}),
                 Tensor({4, 3, 3, 3}), Tensor({4})});
  client.problem.padding = {kOne, 1};
  return client;
}
inline Client conv_tbc() {
  Client client(RETROGRAD_CONV_TBC_BACKWARD, {Tensor({7, 2, 4}), Tensor({7, 2, 3}, 2), Tensor({3, 3, 4}, 3),
                                              Tensor({7, 2, 3}), Tensor({3, 3, 4}), Tensor({4})});
  client.problem.padding = {kOne, 1};
  return client;
}
inline Client pool() {
  Client client(RETROGRAD_AVG_POOL_BACKWARD,
                {Tensor({2, 3, 3, 2}), Tensor({2, 3, 6, 4}), Tensor(), Tensor({2, 3, 6, 4})});
  client.problem.kernel = {kTwo, 1};
  return client;
}

inline Client conv_forward() {
  Client client(RETROGRAD_CONV, {Tensor(), Tensor({2, 3, 6, 5}, 2), Tensor({4, 3, 3, 3}, 3), Tensor(),
                                 Tensor(), Tensor(), Tensor({4}, 4), Tensor({2, 4, 6, 5})});
  client.problem.padding = {kOne, 1};
  return client;
}
inline Client conv_tbc_forward() {
  Client client(RETROGRAD_CONV_TBC, {Tensor(), Tensor({7, 2, 3}, 2), Tensor({3, 3, 4}, 3), Tensor(), Tensor(),
                                     Tensor(), Tensor({4}, 4), Tensor({7, 2, 4})});
  client.problem.padding = {kOne, 1};
  return client;
}
inline Client pool_forward() {
  Client client(RETROGRAD_AVG_POOL, {Tensor(), Tensor({2, 3, 6, 4}, 2), Tensor(), Tensor(), Tensor(),
                                     Tensor(), Tensor(), Tensor({2, 3, 3, 2})});
  client.problem.kernel = {kTwo, 1};
  return client;
}

}  // namespace retrograd::test

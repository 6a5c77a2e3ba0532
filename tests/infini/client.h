// SPDX-License-Identifier: Apache-2.0
// What a client of infiniop keeps: tensors with data, descriptors that clean up, and calls with all their
// arguments.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "infiniop.h"
#include "infinirt.h"

namespace retrograd::infini_test {

struct View {
  std::vector<size_t> shape;
  std::vector<ptrdiff_t> strides = {};  // empty: null is passed, dense
  infiniDtype_t dtype = INFINI_DTYPE_F32;
};

size_t count(const std::vector<size_t>& shape);
std::vector<ptrdiff_t> dense_strides(const std::vector<size_t>& shape);
// The strides of (N, spatial…, C) storage seen as (N, C, spatial…).
std::vector<ptrdiff_t> channels_last_strides(const std::vector<size_t>& shape);

// A view with storage behind it. Every byte starts as garbage.
class Tensor {
 public:
  explicit Tensor(View view);
  const View& view() const { return view_; }
  size_t count() const { return infini_test::count(view_.shape); }
  void* data() { return storage_.data() + origin_; }
  const void* data() const { return storage_.data() + origin_; }

  // By row-major number of the element.
  double at(size_t index) const;
  void set(size_t index, double value);
  std::vector<double> values() const;
  void fill(const std::function<double(size_t)>& value);

 private:
  size_t offset(size_t index) const;
  View view_;
  DType dtype_;
  size_t origin_ = 0;  // bytes from the lowest element to element 0
  std::vector<std::byte> storage_;
};

// Small integers whose products and sums FP32 holds exactly: results can be compared with ==.
double small_integer(size_t index);

// A workspace larger than any problem of these tests asks for. For runs that follow each other only.
std::vector<char>& room();

class TensorDescriptor {
 public:
  explicit TensorDescriptor(const View& view);
  ~TensorDescriptor();
  TensorDescriptor(const TensorDescriptor&) = delete;
  TensorDescriptor& operator=(const TensorDescriptor&) = delete;
  infiniopTensorDescriptor_t get() const { return descriptor_; }

 private:
  infiniopTensorDescriptor_t descriptor_ = nullptr;
};

class Handle {
 public:
  Handle();
  ~Handle();
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  infiniopHandle_t get() const { return handle_; }

 private:
  infiniopHandle_t handle_ = nullptr;
};

// Destroys an operator descriptor of either kind.
class Operator {
 public:
  using Destroy = infiniStatus_t (*)(struct InfiniopDescriptor*);
  Operator(struct InfiniopDescriptor* descriptor, Destroy destroy)
      : descriptor_(descriptor), destroy_(destroy) {}
  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;
  struct InfiniopDescriptor* get() const {
    return descriptor_;
  }

 private:
  struct InfiniopDescriptor* descriptor_;
  Destroy destroy_;
};

// The arguments of infiniopCreateConvBackwardDescriptor: at first a legal 3×3 convolution.
struct ConvCall {
  View grad_output{{2, 6, 8, 8}};
  View input{{2, 4, 10, 10}};
  View weight{{6, 4, 3, 3}};
  std::optional<View> bias = View{{6}};
  std::vector<int> pads{0, 0}, strides{1, 1}, dilations{1, 1};  // empty: null is passed
  size_t n = 1;

  // Makes the descriptors, calls, and destroys the descriptors and arrays at once.
  infiniStatus_t create(infiniopConvBackwardDescriptor_t* out);
};

// The arguments of infiniopCreateAvgPoolBackwardDescriptor: at first a legal 2×2 pooling.
struct PoolCall {
  View grad_input{{2, 3, 8, 8}};
  View grad_output{{2, 3, 4, 4}};
  View input{{2, 3, 8, 8}};
  std::vector<size_t> kernel_size{2, 2}, strides{2, 2}, pads{0, 0};
  bool ceil_mode = false;

  infiniStatus_t create(infiniopAvgPoolBackwardDescriptor_t* out);
};

// The operator, or a failed expectation and null.
Operator make(ConvCall call);
Operator make(PoolCall call);

// The status is `number`, and retrogradGetLastError begins with it and `function` and holds every fragment.
void expect_refused(infiniStatus_t status, infiniStatus_t number, const char* function,
                    std::initializer_list<const char*> fragments);
void expect_refused(infiniStatus_t status, infiniStatus_t number, const char* function,
                    const std::vector<std::string>& fragments);

}  // namespace retrograd::infini_test

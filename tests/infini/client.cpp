// SPDX-License-Identifier: Apache-2.0
// The client's side of infiniop.
#include "infini/client.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "retrograd/retrograd.h"

namespace retrograd::infini_test {
namespace {

DType dtype_of(infiniDtype_t dtype) {
  return dtype == INFINI_DTYPE_F16 ? DType::kF16 : dtype == INFINI_DTYPE_BF16 ? DType::kBF16 : DType::kF32;
}

template <class T>
void* address(std::vector<T>& values) {
  return values.empty() ? nullptr : values.data();
}

}  // namespace

size_t count(const std::vector<size_t>& shape) {
  size_t product = 1;
  for (size_t size : shape) product *= size;
  return product;
}

std::vector<ptrdiff_t> dense_strides(const std::vector<size_t>& shape) {
  std::vector<ptrdiff_t> strides(shape.size());
  ptrdiff_t step = 1;
  for (size_t i = shape.size(); i-- > 0; step *= static_cast<ptrdiff_t>(shape[i])) strides[i] = step;
  return strides;
}

std::vector<ptrdiff_t> channels_last_strides(const std::vector<size_t>& shape) {
  std::vector<ptrdiff_t> strides(shape.size());
  strides[1] = 1;
  auto step = static_cast<ptrdiff_t>(shape[1]);
  for (size_t i = shape.size(); i-- > 2; step *= static_cast<ptrdiff_t>(shape[i])) strides[i] = step;
  strides[0] = step;
  return strides;
}

Tensor::Tensor(View view) : view_(std::move(view)), dtype_(dtype_of(view_.dtype)) {
  const auto strides = view_.strides.empty() ? dense_strides(view_.shape) : view_.strides;
  ptrdiff_t lowest = 0, highest = 0;
  for (size_t i = 0; i < strides.size() && count() > 0; ++i)
    (strides[i] < 0 ? lowest : highest) += strides[i] * (static_cast<ptrdiff_t>(view_.shape[i]) - 1);
  origin_ = static_cast<size_t>(-lowest) * size_of(dtype_);
  storage_.assign(static_cast<size_t>(highest - lowest + 1) * size_of(dtype_), std::byte{0xA5});
}

size_t Tensor::offset(size_t index) const {
  const auto strides = view_.strides.empty() ? dense_strides(view_.shape) : view_.strides;
  ptrdiff_t elements = 0;
  for (size_t i = view_.shape.size(); i-- > 0; index /= view_.shape[i])
    elements += static_cast<ptrdiff_t>(index % view_.shape[i]) * strides[i];
  return origin_ +
         static_cast<size_t>(elements) * size_of(dtype_);  // wraps for negative strides, and comes out right
}

double Tensor::at(size_t index) const {
  return static_cast<double>(load_as_f32(dtype_, storage_.data() + offset(index)));
}

void Tensor::set(size_t index, double value) {
  store_from_f32(dtype_, storage_.data() + offset(index), static_cast<float>(value));
}

std::vector<double> Tensor::values() const {
  std::vector<double> values(count());
  for (size_t i = 0; i < values.size(); ++i) values[i] = at(i);
  return values;
}

void Tensor::fill(const std::function<double(size_t)>& value) {
  for (size_t i = 0; i < count(); ++i) set(i, value(i));
}

std::vector<char>& room() {
  static std::vector<char> bytes(4 << 20);
  return bytes;
}

double small_integer(size_t index) { return static_cast<double>(index * 7 % 11) - 5; }

TensorDescriptor::TensorDescriptor(const View& view) {
  EXPECT_EQ(infiniopCreateTensorDescriptor(&descriptor_, view.shape.size(), view.shape.data(),
                                           view.strides.empty() ? nullptr : view.strides.data(), view.dtype),
            INFINI_STATUS_SUCCESS)
      << retrogradGetLastError();
}
TensorDescriptor::~TensorDescriptor() {
  EXPECT_EQ(infiniopDestroyTensorDescriptor(descriptor_), INFINI_STATUS_SUCCESS);
}

Handle::Handle() { EXPECT_EQ(infiniopCreateHandle(&handle_), INFINI_STATUS_SUCCESS); }
Handle::~Handle() { EXPECT_EQ(infiniopDestroyHandle(handle_), INFINI_STATUS_SUCCESS); }

Operator::~Operator() {
  if (descriptor_ != nullptr) {
    EXPECT_EQ(destroy_(descriptor_), INFINI_STATUS_SUCCESS);
  }
}

infiniStatus_t ConvCall::create(infiniopConvBackwardDescriptor_t* out) {
  const Handle handle;
  const TensorDescriptor grad_output_desc(grad_output), input_desc(input), weight_desc(weight);
  std::optional<TensorDescriptor> bias_desc;
  if (bias) bias_desc.emplace(*bias);
  const infiniStatus_t status = infiniopCreateConvBackwardDescriptor(
      handle.get(), out, grad_output_desc.get(), input_desc.get(), weight_desc.get(),
      bias_desc ? bias_desc->get() : nullptr, address(pads), address(strides), address(dilations), n);
  for (auto* list : {&pads, &strides, &dilations}) std::fill(list->begin(), list->end(), -1);
  return status;
}

infiniStatus_t PoolCall::create(infiniopAvgPoolBackwardDescriptor_t* out) {
  const Handle handle;
  const TensorDescriptor grad_input_desc(grad_input), grad_output_desc(grad_output), input_desc(input);
  const infiniStatus_t status = infiniopCreateAvgPoolBackwardDescriptor(
      handle.get(), out, grad_input_desc.get(), grad_output_desc.get(), input_desc.get(),
      address(kernel_size), address(strides), address(pads), ceil_mode);
  for (auto* list : {&kernel_size, &strides, &pads}) std::fill(list->begin(), list->end(), size_t{0});
  return status;
}

Operator make(ConvCall call) {
  infiniopConvBackwardDescriptor_t descriptor = nullptr;
  EXPECT_EQ(call.create(&descriptor), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  return {descriptor, infiniopDestroyConvBackwardDescriptor};
}

Operator make(PoolCall call) {
  infiniopAvgPoolBackwardDescriptor_t descriptor = nullptr;
  EXPECT_EQ(call.create(&descriptor), INFINI_STATUS_SUCCESS) << retrogradGetLastError();
  return {descriptor, infiniopDestroyAvgPoolBackwardDescriptor};
}

void expect_refused(infiniStatus_t status, infiniStatus_t number, const char* function,
                    std::initializer_list<const char*> fragments) {
  expect_refused(status, number, function, std::vector<std::string>(fragments.begin(), fragments.end()));
}

void expect_refused(infiniStatus_t status, infiniStatus_t number, const char* function,
                    const std::vector<std::string>& fragments) {
  const std::string text = retrogradGetLastError();
  EXPECT_EQ(status, number) << text;
  const std::string head = std::to_string(static_cast<int>(number)) + " " + function + ": ";
  EXPECT_EQ(text.substr(0, head.size()), head) << text;
  for (const std::string& fragment : fragments)
    EXPECT_NE(text.find(fragment), std::string::npos) << "expected \"" << fragment << "\" in: " << text;
}

}  // namespace retrograd::infini_test

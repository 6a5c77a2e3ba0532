// SPDX-License-Identifier: Apache-2.0
// The functions of cuDNN that are used, found by name, so that nothing links to it.
#include "runtime/cuda/cudnn.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <map>
#include <mutex>

namespace retrograd::runtime {
namespace {

// Values of cuDNN's enumerations.
constexpr int kSuccess = 0;
constexpr int kFloat = 0, kHalf = 2, kBfloat16 = 9;
constexpr int kNchw = 0, kNhwc = 1;
constexpr int kCrossCorrelation = 1;
constexpr int kTensorOpMath = 1, kFmaMath = 3;
constexpr int kPrecomputedGemm = 1;  // forward
constexpr int kDeterministic = 1;    // backward data, backward filter: their algorithms 1

struct Library {
  int (*create)(void**) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*create_tensor)(void**) = nullptr;
  int (*set_tensor)(void*, int, int, const int*, const int*) = nullptr;
  int (*destroy_tensor)(void*) = nullptr;
  int (*create_filter)(void**) = nullptr;
  int (*set_filter)(void*, int, int, int, const int*) = nullptr;
  int (*destroy_filter)(void*) = nullptr;
  int (*create_convolution)(void**) = nullptr;
  int (*set_convolution)(void*, int, const int*, const int*, const int*, int, int) = nullptr;
  int (*set_groups)(void*, int) = nullptr;
  int (*set_math)(void*, int) = nullptr;
  int (*destroy_convolution)(void*) = nullptr;
  int (*forward_workspace)(void*, void*, void*, void*, void*, int, size_t*) = nullptr;
  int (*data_workspace)(void*, void*, void*, void*, void*, int, size_t*) = nullptr;
  int (*filter_workspace)(void*, void*, void*, void*, void*, int, size_t*) = nullptr;
  int (*forward)(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t,
                 const void*, void*, void*) = nullptr;
  int (*backward_data)(void*, const void*, void*, const void*, void*, const void*, void*, int, void*, size_t,
                       const void*, void*, void*) = nullptr;
  int (*backward_filter)(void*, const void*, void*, const void*, void*, const void*, void*, int, void*,
                         size_t, const void*, void*, void*) = nullptr;
};

template <class Function>
bool find(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

const Library* load() {
  void* const handle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto* l = new Library;
  const bool complete = find(handle, "cudnnCreate", l->create) &&
                        find(handle, "cudnnSetStream", l->set_stream) &&
                        find(handle, "cudnnCreateTensorDescriptor", l->create_tensor) &&
                        find(handle, "cudnnSetTensorNdDescriptor", l->set_tensor) &&
                        find(handle, "cudnnDestroyTensorDescriptor", l->destroy_tensor) &&
                        find(handle, "cudnnCreateFilterDescriptor", l->create_filter) &&
                        find(handle, "cudnnSetFilterNdDescriptor", l->set_filter) &&
                        find(handle, "cudnnDestroyFilterDescriptor", l->destroy_filter) &&
                        find(handle, "cudnnCreateConvolutionDescriptor", l->create_convolution) &&
                        find(handle, "cudnnSetConvolutionNdDescriptor", l->set_convolution) &&
                        find(handle, "cudnnSetConvolutionGroupCount", l->set_groups) &&
                        find(handle, "cudnnSetConvolutionMathType", l->set_math) &&
                        find(handle, "cudnnDestroyConvolutionDescriptor", l->destroy_convolution) &&
                        find(handle, "cudnnGetConvolutionForwardWorkspaceSize", l->forward_workspace) &&
                        find(handle, "cudnnGetConvolutionBackwardDataWorkspaceSize", l->data_workspace) &&
                        find(handle, "cudnnGetConvolutionBackwardFilterWorkspaceSize", l->filter_workspace) &&
                        find(handle, "cudnnConvolutionForward", l->forward) &&
                        find(handle, "cudnnConvolutionBackwardData", l->backward_data) &&
                        find(handle, "cudnnConvolutionBackwardFilter", l->backward_filter);
  return complete ? l : nullptr;
}

// Null without cuDNN. Never unloaded: its threads and ours may outlive static destructors.
const Library* library() {
  static const Library* const loaded = load();
  return loaded;
}

// cuDNN's handles serve one thread at a time: one a device, lent under a lock for the time of a few launches.
class Handle {
 public:
  Handle() : lock_(mutex()) {
    int device = 0;
    if (cudaGetDevice(&device) != cudaSuccess) return;
    static auto& handles = *new std::map<int, void*>;
    void*& handle = handles[device];
    if (handle == nullptr && library()->create(&handle) != kSuccess) handle = nullptr;
    handle_ = handle;
  }
  void* get() const { return handle_; }

 private:
  static std::mutex& mutex() {
    static auto& one = *new std::mutex;
    return one;
  }
  std::lock_guard<std::mutex> lock_;
  void* handle_ = nullptr;
};

int type_number(CudnnType type) {
  return type == CudnnType::kF32 ? kFloat : type == CudnnType::kF16 ? kHalf : kBfloat16;
}

bool set_tensor(void* descriptor, const CudnnShape& s, int channels, const std::array<int, 3>& spatial) {
  std::array<int, 5> sizes{s.batch, channels}, strides{};
  const int rank = s.axes + 2;
  int places = 1;
  for (int i = s.axes - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    sizes[at + 2] = spatial[at + 3 - static_cast<size_t>(s.axes)];
    strides[at + 2] = s.channels_last ? places * channels : places;
    places *= sizes[at + 2];
  }
  strides[1] = s.channels_last ? 1 : places;
  strides[0] = places * channels;
  return library()->set_tensor(descriptor, type_number(s.type), rank, sizes.data(), strides.data()) ==
         kSuccess;
}

bool set_filter(void* descriptor, const CudnnShape& s) {
  std::array<int, 5> sizes{s.y_channels, s.x_channels / s.groups};
  for (int i = 0; i < s.axes; ++i)
    sizes[static_cast<size_t>(i) + 2] = s.kernel[static_cast<size_t>(i + 3 - s.axes)];
  return library()->set_filter(descriptor, type_number(s.type), s.channels_last ? kNhwc : kNchw, s.axes + 2,
                               sizes.data()) == kSuccess;
}

bool set_convolution(void* descriptor, const CudnnShape& s) {
  const auto first = static_cast<size_t>(3 - s.axes);
  const Library& l = *library();
  return l.set_convolution(descriptor, s.axes, s.pad.data() + first, s.stride.data() + first,
                           s.dilation.data() + first, kCrossCorrelation, kFloat) == kSuccess &&
         l.set_groups(descriptor, s.groups) == kSuccess &&
         l.set_math(descriptor, s.type == CudnnType::kF32 ? kFmaMath : kTensorOpMath) == kSuccess;
}

}  // namespace

std::unique_ptr<const CudnnConvolution> CudnnConvolution::make(const CudnnShape& shape) {
  if (library() == nullptr) return nullptr;
  const Library& l = *library();
  std::unique_ptr<CudnnConvolution> made(new CudnnConvolution);
  made->pass_ = shape.pass;
  if (l.create_tensor(&made->x_) != kSuccess || l.create_tensor(&made->y_) != kSuccess ||
      l.create_filter(&made->w_) != kSuccess || l.create_convolution(&made->convolution_) != kSuccess ||
      !set_tensor(made->x_, shape, shape.x_channels, shape.x) ||
      !set_tensor(made->y_, shape, shape.y_channels, shape.y) || !set_filter(made->w_, shape) ||
      !set_convolution(made->convolution_, shape))
    return nullptr;
  const Handle handle;
  if (handle.get() == nullptr) return nullptr;
  int status = kSuccess;
  switch (shape.pass) {
    case CudnnPass::kForward:
      status = l.forward_workspace(handle.get(), made->x_, made->w_, made->convolution_, made->y_,
                                   kPrecomputedGemm, &made->workspace_bytes_);
      break;
    case CudnnPass::kBackwardData:
      status = l.data_workspace(handle.get(), made->w_, made->y_, made->convolution_, made->x_,
                                kDeterministic, &made->workspace_bytes_);
      break;
    case CudnnPass::kBackwardFilter:
      status = l.filter_workspace(handle.get(), made->x_, made->y_, made->convolution_, made->w_,
                                  kDeterministic, &made->workspace_bytes_);
      break;
  }
  if (status != kSuccess) return nullptr;
  return made;
}

CudnnConvolution::~CudnnConvolution() {
  const Library& l = *library();
  if (x_ != nullptr) l.destroy_tensor(x_);
  if (y_ != nullptr) l.destroy_tensor(y_);
  if (w_ != nullptr) l.destroy_filter(w_);
  if (convolution_ != nullptr) l.destroy_convolution(convolution_);
}

bool CudnnConvolution::run(void* x, void* y, void* w, void* workspace, void* stream) const {
  const Library& l = *library();
  const Handle handle;
  if (handle.get() == nullptr || l.set_stream(handle.get(), stream) != kSuccess) return false;
  const float one = 1, zero = 0;
  switch (pass_) {
    case CudnnPass::kForward:
      return l.forward(handle.get(), &one, x_, x, w_, w, convolution_, kPrecomputedGemm, workspace,
                       workspace_bytes_, &zero, y_, y) == kSuccess;
    case CudnnPass::kBackwardData:
      return l.backward_data(handle.get(), &one, w_, w, y_, y, convolution_, kDeterministic, workspace,
                             workspace_bytes_, &zero, x_, x) == kSuccess;
    case CudnnPass::kBackwardFilter:
      return l.backward_filter(handle.get(), &one, x_, x, y_, y, convolution_, kDeterministic, workspace,
                               workspace_bytes_, &zero, w_, w) == kSuccess;
  }
  return false;
}

}  // namespace retrograd::runtime

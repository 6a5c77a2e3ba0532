// SPDX-License-Identifier: Apache-2.0
// cuDNN's graph interface. Its functions are looked up by name, so that the library does not link against it.
#include "runtime/cuda/cudnn.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/settings.h"

namespace retrograd::runtime {
namespace {

// Values of cuDNN's enumerations.
constexpr int kSuccess = 0;
enum DataType { kFloat = 0, kHalf = 2, kBfloat16 = 9 };
enum AttributeType {
  kHandleType = 0,
  kDataType = 1,
  kInt64 = 3,
  kFloatType = 4,
  kPointer = 6,
  kConvolutionMode = 7,
  kHeuristicMode = 8,
  kNumericalNote = 11,
  kDescriptorType = 15,
  kBehaviourNote = 19
};
enum DescriptorType {
  kConvolution = 1,
  kEngine = 2,
  kEngineConfig = 3,
  kHeuristics = 4,
  kPlan = 5,
  kForwardOperation = 10,
  kDataOperation = 12,
  kGraph = 15,
  kVariantPack = 16,
  kTensor = 17
};
constexpr int kCrossCorrelation = 1;
constexpr int kHeuristicModeA = 3;
constexpr int kRuntimeCompilation = 0;  // a behaviour note
enum Note {
  kDownConvertInputs = 1,
  kReducedReduction = 2,
  kFft = 3,
  kNondeterministic = 4,
  kWinograd = 5,
  kWinograd4 = 6,
  kWinograd6 = 7,
  kWinograd13 = 8
};
constexpr int64_t kXId = 'x', kYId = 'y', kWId = 'w';

struct Library {
  int (*create)(void**) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*create_descriptor)(int, void**) = nullptr;
  int (*destroy_descriptor)(void*) = nullptr;
  int (*set_attribute)(void*, int, int, int64_t, const void*) = nullptr;
  int (*get_attribute)(void*, int, int, int64_t, int64_t*, void*) = nullptr;
  int (*finalize)(void*) = nullptr;
  int (*execute)(void*, void*, void*) = nullptr;
};

template <class Function>
bool look_up(void* handle, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(handle, name));
  return function != nullptr;
}

const Library* load() {
  if (!settings().cudnn) return nullptr;
  void* const handle = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto* l = new Library;
  const bool complete = look_up(handle, "cudnnCreate", l->create) &&
                        look_up(handle, "cudnnSetStream", l->set_stream) &&
                        look_up(handle, "cudnnBackendCreateDescriptor", l->create_descriptor) &&
                        look_up(handle, "cudnnBackendDestroyDescriptor", l->destroy_descriptor) &&
                        look_up(handle, "cudnnBackendSetAttribute", l->set_attribute) &&
                        look_up(handle, "cudnnBackendGetAttribute", l->get_attribute) &&
                        look_up(handle, "cudnnBackendFinalize", l->finalize) &&
                        look_up(handle, "cudnnBackendExecute", l->execute);
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

// A descriptor that is destroyed at the end, and whether every call on it succeeded.
class Descriptor {
 public:
  explicit Descriptor(DescriptorType type) : good_(library()->create_descriptor(type, &self_) == kSuccess) {}
  ~Descriptor() {
    if (self_ != nullptr) library()->destroy_descriptor(self_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  Descriptor& set(int name, AttributeType type, int64_t count, const void* values) {
    good_ = good_ && library()->set_attribute(self_, name, type, count, values) == kSuccess;
    return *this;
  }
  Descriptor& set(int name, const Descriptor& other) {
    void* const pointer = other.self_;
    return set(name, kDescriptorType, 1, &pointer);
  }
  Descriptor& set(int name, AttributeType type, int value) { return set(name, type, 1, &value); }
  Descriptor& set(int name, int64_t value) { return set(name, kInt64, 1, &value); }
  bool finalize() { return good_ = good_ && library()->finalize(self_) == kSuccess; }
  void* get() const { return self_; }
  void* release() { return std::exchange(self_, nullptr); }

 private:
  void* self_ = nullptr;
  bool good_;
};

DataType type_of(const CudnnShape& s) { return s.type == CudnnType::kF16 ? kHalf : kBfloat16; }

bool describe(Descriptor& tensor, const CudnnShape& s, int64_t id, int64_t outer, int64_t channels,
              const std::array<int64_t, 3>& spatial) {
  std::array<int64_t, 5> sizes{outer, channels}, strides{};
  int64_t places = 1;
  for (int i = s.axes - 1; i >= 0; --i) {
    const auto at = static_cast<size_t>(i);
    sizes[at + 2] = spatial[at + 3 - static_cast<size_t>(s.axes)];
    strides[at + 2] = s.channels_last ? places * channels : places;
    places *= sizes[at + 2];
  }
  strides[1] = s.channels_last ? 1 : places;
  strides[0] = places * channels;
  return tensor.set(900, int64_t{16})
      .set(901, kDataType, type_of(s))
      .set(902, kInt64, s.axes + 2, sizes.data())
      .set(903, kInt64, s.axes + 2, strides.data())
      .set(906, id)
      .finalize();
}

bool describe(Descriptor& convolution, const CudnnShape& s) {
  const auto first = static_cast<size_t>(3 - s.axes);
  return convolution.set(100, kDataType, kFloat)
      .set(101, kConvolutionMode, kCrossCorrelation)
      .set(102, kInt64, s.axes, s.dilation.data() + first)
      .set(103, kInt64, s.axes, s.stride.data() + first)
      .set(104, kInt64, s.axes, s.pad_hi.data() + first)
      .set(105, kInt64, s.axes, s.pad_lo.data() + first)
      .set(106, int64_t{s.axes})
      .finalize();
}

// The numbers of an operation's attributes, in the order alpha, beta, convolution, w, x, y.
struct OperationNames {
  DescriptorType type;
  int alpha, beta, convolution, w, x, y;
};
OperationNames names_of(CudnnPass pass) {
  if (pass == CudnnPass::kForward) return {kForwardOperation, 700, 701, 702, 703, 704, 705};
  return {kDataOperation, 706, 707, 708, 709, 710, 711};
}

std::vector<int> notes_of(const Descriptor& engine, int name, AttributeType type) {
  std::vector<int> notes(16);
  int64_t count = 0;
  if (library()->get_attribute(engine.get(), name, type, 16, &count, notes.data()) != kSuccess) count = 0;
  notes.resize(static_cast<size_t>(std::clamp<int64_t>(count, 0, 16)));
  return notes;
}

bool is_wanted(const Descriptor& config) {
  const Descriptor engine(kEngine);
  void* pointer = engine.get();
  int64_t count = 0;
  if (library()->get_attribute(config.get(), 300, kDescriptorType, 1, &count, &pointer) != kSuccess)
    return false;
  for (int note : notes_of(engine, 1303, kNumericalNote))
    if (note >= kDownConvertInputs && note <= kWinograd13) return false;
  for (int note : notes_of(engine, 1305, kBehaviourNote))
    if (note == kRuntimeCompilation) return false;
  return true;
}

}  // namespace

bool cudnn_is_there() { return library() != nullptr; }

std::shared_ptr<const CudnnConvolution> CudnnConvolution::find(const CudnnShape& shape) {
  if (library() == nullptr) return nullptr;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return nullptr;
  static auto& mutex = *new std::mutex;
  static auto& known = *new std::map<std::pair<int, CudnnShape>, std::shared_ptr<const CudnnConvolution>>;
  constexpr size_t kMost = 512;
  std::lock_guard lock(mutex);
  const auto key = std::pair(device, shape);
  if (const auto it = known.find(key); it != known.end()) return it->second;
  if (known.size() >= kMost) known.clear();
  return known[key] = make(shape);
}

std::shared_ptr<const CudnnConvolution> CudnnConvolution::make(const CudnnShape& s) {
  const Handle handle;
  void* const raw_handle = handle.get();
  if (raw_handle == nullptr) return nullptr;
  Descriptor x(kTensor), y(kTensor), w(kTensor), convolution(kConvolution);
  const OperationNames names = names_of(s.pass);
  Descriptor operation(names.type), graph(kGraph), heuristics(kHeuristics);
  const float one = 1, zero = 0;
  if (!describe(x, s, kXId, s.batch, s.x_channels, s.x) ||
      !describe(y, s, kYId, s.batch, s.y_channels, s.y) ||
      !describe(w, s, kWId, s.y_channels, s.x_channels / s.groups, s.kernel) || !describe(convolution, s) ||
      !operation.set(names.alpha, kFloatType, 1, &one)
           .set(names.beta, kFloatType, 1, &zero)
           .set(names.convolution, convolution)
           .set(names.w, w)
           .set(names.x, x)
           .set(names.y, y)
           .finalize() ||
      !graph.set(800, kHandleType, 1, &raw_handle).set(801, operation).finalize() ||
      !heuristics.set(201, graph).set(200, kHeuristicMode, kHeuristicModeA).finalize())
    return nullptr;

  constexpr int64_t kConfigs = 24;
  std::vector<std::unique_ptr<Descriptor>> configs;
  std::vector<void*> pointers;
  for (int64_t i = 0; i < kConfigs; ++i) {
    configs.push_back(std::make_unique<Descriptor>(kEngineConfig));
    pointers.push_back(configs.back()->get());
  }
  int64_t count = 0;
  if (library()->get_attribute(heuristics.get(), 202, kDescriptorType, kConfigs, &count, pointers.data()) !=
      kSuccess)
    return nullptr;
  for (int64_t i = 0; i < std::min(count, kConfigs); ++i) {
    const Descriptor& config = *configs[static_cast<size_t>(i)];
    if (!is_wanted(config)) continue;
    Descriptor plan(kPlan);
    if (!plan.set(400, kHandleType, 1, &raw_handle).set(401, config).finalize()) continue;
    int64_t bytes = 0, got = 0;
    if (library()->get_attribute(plan.get(), 402, kInt64, 1, &got, &bytes) != kSuccess) continue;
    return std::shared_ptr<const CudnnConvolution>(
        new CudnnConvolution(plan.release(), static_cast<size_t>(bytes)));
  }
  return nullptr;
}

CudnnConvolution::~CudnnConvolution() { library()->destroy_descriptor(plan_); }

bool CudnnConvolution::run(void* x, void* y, void* w, void* workspace, void* stream) const {
  const int64_t ids[] = {kXId, kYId, kWId};
  void* const data[] = {x, y, w};
  Descriptor pack(kVariantPack);
  if (!pack.set(1000, kInt64, 3, ids)
           .set(1001, kPointer, 3, data)
           .set(1003, kPointer, 1, &workspace)
           .finalize())
    return false;
  const Handle handle;
  return handle.get() != nullptr && library()->set_stream(handle.get(), stream) == kSuccess &&
         library()->execute(handle.get(), plan_, pack.get()) == kSuccess;
}

}  // namespace retrograd::runtime

// SPDX-License-Identifier: Apache-2.0
// The structs of DLPack (https://dmlc.github.io/dlpack), as capsules from other libraries hold them: both the
// form before version 1.0 and the one since.
#pragma once

#include <cstdint>

namespace retrograd::python::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3, kCudaManaged = 13 };
enum TypeCode : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kFloat8E4m3fn = 10 };

struct Device {
  int32_t type, id;
};
struct DataType {
  uint8_t code, bits;
  uint16_t lanes;
};
struct Tensor {
  void* data;
  Device device;
  int32_t rank;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: dense
  uint64_t byte_offset;
};

struct Managed {  // capsule "dltensor"
  Tensor tensor;
  void* context;
  void (*deleter)(Managed*);
};

inline constexpr uint64_t kReadOnly = 1;
struct VersionedManaged {  // capsule "dltensor_versioned"
  uint32_t major, minor;
  void* context;
  void (*deleter)(VersionedManaged*);
  uint64_t flags;
  Tensor tensor;
};

}  // namespace retrograd::python::dlpack

// SPDX-License-Identifier: Apache-2.0
// cuDNN 9, loaded when it is first asked for; without it there are no convolutions here, and callers do
// without.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

namespace retrograd::runtime {

enum class CudnnPass : unsigned char { kForward, kBackwardData, kBackwardFilter };
enum class CudnnType : unsigned char { kF32, kF16, kBF16 };

struct CudnnShape {
  CudnnPass pass = CudnnPass::kForward;
  CudnnType type = CudnnType::kF32;
  bool channels_last = false;                                 // all three tensors; else row-major
  int axes = 2;                                               // the last ones of the arrays
  int batch = 1, groups = 1, x_channels = 1, y_channels = 1;  // of all groups
  std::array<int, 3> x{}, y{}, kernel{}, stride{}, dilation{}, pad{};
};

// One convolution on dense tensors, by the algorithm that is deterministic and exact (an implicit matrix
// product with FP32 sums; no Winograd, no Fourier transform, no TF32). May run on several threads at once.
class CudnnConvolution {
 public:
  // Null when there is no cuDNN, or it does not take the shape.
  static std::unique_ptr<const CudnnConvolution> make(const CudnnShape& shape);
  ~CudnnConvolution();

  size_t workspace_bytes() const { return workspace_bytes_; }
  // Which of the three is written is the shape's pass. False when cuDNN refused.
  bool run(void* x, void* y, void* w, void* workspace, void* stream) const;

 private:
  CudnnConvolution() = default;
  CudnnPass pass_ = CudnnPass::kForward;
  void* x_ = nullptr;
  void* y_ = nullptr;
  void* w_ = nullptr;
  void* convolution_ = nullptr;
  size_t workspace_bytes_ = 0;
};

}  // namespace retrograd::runtime

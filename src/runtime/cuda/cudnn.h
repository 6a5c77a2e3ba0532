// SPDX-License-Identifier: Apache-2.0
// cuDNN 9, loaded with dlopen at first use. Where it is not installed, every query answers that it has no
// convolution.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace retrograd::runtime {

// Whether cuDNN can be loaded and the settings allow it.
bool cudnn_is_there();

enum class CudnnPass : unsigned char { kForward, kBackwardData };
enum class CudnnType : unsigned char { kF16, kBF16 };

struct CudnnShape {
  CudnnPass pass = CudnnPass::kForward;
  CudnnType type = CudnnType::kF16;
  bool channels_last = false;                                     // all three tensors; else row-major
  int axes = 2;                                                   // the last ones of the arrays
  int64_t batch = 1, groups = 1, x_channels = 1, y_channels = 1;  // of all groups
  std::array<int64_t, 3> x{}, y{}, kernel{}, stride{}, dilation{}, pad_lo{}, pad_hi{};
  auto operator<=>(const CudnnShape&) const = default;
};

// One convolution on dense, 16-byte aligned tensors, by the first engine that cuDNN recommends and that is
// deterministic and exact: FP32 sums of exact products, no Winograd, no Fourier transform. Nothing
// is timed, nothing is compiled. May run on several threads at once.
class CudnnConvolution {
 public:
  // Null when there is no cuDNN, or it does not take the shape. Answers are kept: asking again is cheap.
  static std::shared_ptr<const CudnnConvolution> find(const CudnnShape& shape);
  ~CudnnConvolution();
  CudnnConvolution(const CudnnConvolution&) = delete;
  CudnnConvolution& operator=(const CudnnConvolution&) = delete;

  size_t workspace_bytes() const { return workspace_bytes_; }
  // Which of the three is written is the shape's pass. False when cuDNN refused.
  bool run(void* x, void* y, void* w, void* workspace, void* stream) const;

 private:
  CudnnConvolution(void* plan, size_t workspace_bytes) : plan_(plan), workspace_bytes_(workspace_bytes) {}
  static std::shared_ptr<const CudnnConvolution> make(const CudnnShape& shape);
  void* plan_;
  size_t workspace_bytes_;
};

}  // namespace retrograd::runtime

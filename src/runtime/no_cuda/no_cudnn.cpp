// SPDX-License-Identifier: Apache-2.0
// cuDNN in a build without CUDA: never there.
#include "runtime/cuda/cudnn.h"

namespace retrograd::runtime {

bool cudnn_is_there() { return false; }
std::shared_ptr<const CudnnConvolution> CudnnConvolution::find(const CudnnShape&) { return nullptr; }
CudnnConvolution::~CudnnConvolution() = default;
bool CudnnConvolution::run(void*, void*, void*, void*, void*) const { return false; }

}  // namespace retrograd::runtime

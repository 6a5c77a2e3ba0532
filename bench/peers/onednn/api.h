// SPDX-License-Identifier: Apache-2.0
// What differs between oneDNN 2 (Debian's) and 3 (PyPI's): version 3 makes a primitive's descriptor of an
// engine and the arguments, version 2 of an operation descriptor that holds the arguments, and an engine.
#pragma once

#include <oneapi/dnnl/dnnl.hpp>

namespace retrograd::peers {

inline dnnl::memory::dims sizes_of(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_dims();
#else
  return desc.dims();
#endif
}

inline dnnl::memory::data_type type_of(const dnnl::memory::desc& desc) {
#if DNNL_VERSION_MAJOR >= 3
  return desc.get_data_type();
#else
  return desc.data_type();
#endif
}

template <class Primitive, class... Arguments>
typename Primitive::primitive_desc forward_desc(const dnnl::engine& engine, const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments...};
#else
  return {typename Primitive::desc(arguments...), engine};
#endif
}

// A gradient's descriptor wants the forward one as a hint.
template <class Primitive, class Hint, class... Arguments>
typename Primitive::primitive_desc backward_desc(const dnnl::engine& engine, const Hint& hint,
                                                 const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., hint};
#else
  return {typename Primitive::desc(arguments...), engine, hint};
#endif
}

struct PoolingWindow {
  dnnl::memory::dims kernel, stride, padding;
};
inline dnnl::pooling_backward::primitive_desc pooling_desc(const dnnl::engine& engine,
                                                           dnnl::algorithm algorithm,
                                                           const dnnl::memory::desc& x,
                                                           const dnnl::memory::desc& y,
                                                           const PoolingWindow& w) {
  const auto training = dnnl::prop_kind::forward_training;
#if DNNL_VERSION_MAJOR >= 3
  const dnnl::memory::dims no_gaps(w.kernel.size(), 0);
  const auto forward = forward_desc<dnnl::pooling_forward>(engine, training, algorithm, x, y, w.stride,
                                                           w.kernel, no_gaps, w.padding, w.padding);
  return backward_desc<dnnl::pooling_backward>(engine, forward, algorithm, x, y, w.stride, w.kernel, no_gaps,
                                               w.padding, w.padding);
#else
  const auto forward = forward_desc<dnnl::pooling_forward>(engine, training, algorithm, x, y, w.stride,
                                                           w.kernel, w.padding, w.padding);
  return backward_desc<dnnl::pooling_backward>(engine, forward, algorithm, x, y, w.stride, w.kernel,
                                               w.padding, w.padding);
#endif
}

}  // namespace retrograd::peers

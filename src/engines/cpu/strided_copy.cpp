// SPDX-License-Identifier: Apache-2.0
// Rows of runs: one memcpy a run where it lies side by side on both sides, else one an element.
#include "engines/cpu/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace retrograd::engines::cpu {
namespace {

struct Runs {
  int64_t runs, from_step, to_step;  // bytes
  int64_t run, from_stride, to_stride;
};

// Short runs are most of the work where windows are small: their lengths are known to the compiler.
template <class Element, int64_t kRun>
void copy_short(const std::byte* from, std::byte* to, const Runs& r) {
  for (int64_t i = 0; i < r.runs; ++i, from += r.from_step, to += r.to_step)
    std::memcpy(to, from, kRun * sizeof(Element));
}

template <class Element>
void copy_runs(const std::byte* from, std::byte* to, const Runs& r) {
  if (r.from_stride == 1 && r.to_stride == 1) {
    switch (r.run) {
      case 1:
        return copy_short<Element, 1>(from, to, r);
      case 2:
        return copy_short<Element, 2>(from, to, r);
      case 4:
        return copy_short<Element, 4>(from, to, r);
      case 8:
        return copy_short<Element, 8>(from, to, r);
      case 16:
        return copy_short<Element, 16>(from, to, r);
      default:
        for (int64_t i = 0; i < r.runs; ++i, from += r.from_step, to += r.to_step)
          std::memcpy(to, from, static_cast<size_t>(r.run) * sizeof(Element));
        return;
    }
  }
  constexpr auto kBytes = static_cast<int64_t>(sizeof(Element));
  for (int64_t i = 0; i < r.runs; ++i, from += r.from_step, to += r.to_step)
    for (int64_t j = 0; j < r.run; ++j)
      std::memcpy(to + j * r.to_stride * kBytes, from + j * r.from_stride * kBytes, sizeof(Element));
}

}  // namespace

std::vector<CopyAxis> as_they_lie(std::vector<CopyAxis> axes) {
  std::stable_sort(axes.begin(), axes.end(),
                   [](const CopyAxis& a, const CopyAxis& b) { return std::abs(a.to) > std::abs(b.to); });
  return axes;
}

StridedCopy::StridedCopy(std::vector<CopyAxis> axes, size_t element_bytes)
    : bytes_(static_cast<int64_t>(element_bytes)) {
  std::erase_if(axes, [](const CopyAxis& axis) { return axis.size == 1; });
  for (const CopyAxis& axis : axes) {
    if (!outer_.empty() && outer_.back().from == axis.size * axis.from &&
        outer_.back().to == axis.size * axis.to) {
      outer_.back() = {outer_.back().size * axis.size, axis.from, axis.to};
    } else {
      outer_.push_back(axis);
    }
  }
  if (!outer_.empty()) {
    run_ = outer_.back().size;
    from_stride_ = outer_.back().from;
    to_stride_ = outer_.back().to;
    outer_.pop_back();
  }
  if (!outer_.empty()) {
    runs_ = outer_.back().size;
    from_step_ = outer_.back().from;
    to_step_ = outer_.back().to;
    outer_.pop_back();
  }
  for (const CopyAxis& axis : outer_) rows_ *= axis.size;
}

template <class Row>
void StridedCopy::for_rows(int64_t begin, int64_t end, const Row& row) const {
  for (int64_t index = begin; index < end; ++index) {
    int64_t from = 0, to = 0, rest = index;
    for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
      from += rest % axis->size * axis->from;
      to += rest % axis->size * axis->to;
      rest /= axis->size;
    }
    row(from * bytes_, to * bytes_);
  }
}

void StridedCopy::copy(const std::byte* from, std::byte* to, int64_t begin, int64_t end) const {
  const Runs runs{runs_, from_step_ * bytes_, to_step_ * bytes_, run_, from_stride_, to_stride_};
  for_rows(begin, end, [&](int64_t from_at, int64_t to_at) {
    switch (bytes_) {
      case 1:
        return copy_runs<uint8_t>(from + from_at, to + to_at, runs);
      case 2:
        return copy_runs<uint16_t>(from + from_at, to + to_at, runs);
      default:
        return copy_runs<uint32_t>(from + from_at, to + to_at, runs);
    }
  });
}

void StridedCopy::clear(std::byte* to, int64_t begin, int64_t end) const {
  for_rows(begin, end, [&](int64_t, int64_t to_at) {
    for (int64_t i = 0; i < runs_; ++i) {
      std::byte* const run = to + to_at + i * to_step_ * bytes_;
      if (to_stride_ == 1) {
        std::memset(run, 0, static_cast<size_t>(run_ * bytes_));
      } else {
        for (int64_t j = 0; j < run_; ++j)
          std::memset(run + j * to_stride_ * bytes_, 0, static_cast<size_t>(bytes_));
      }
    }
  });
}

}  // namespace retrograd::engines::cpu

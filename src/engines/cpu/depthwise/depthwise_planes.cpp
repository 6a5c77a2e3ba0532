// SPDX-License-Identifier: Apache-2.0
// Runs of pixels of many planes: transposed in place where planes are plain FP32 rows, copied where lanes lie
// side by side (channels last), converted row by row into a buffer otherwise.
#include "engines/cpu/depthwise/depthwise_planes.h"

#include <algorithm>
#include <numeric>

#include "base/checked.h"
#include "engines/cpu/depthwise/depthwise_tasks.h"
#include "engines/cpu/rows.h"
#include "kernels/cpu/prefetch.h"

namespace retrograd::engines::cpu {
namespace {

constexpr int64_t kBufferPlaces = 64;

std::byte* address(const LanePlanes& p, int64_t lane, int64_t at) {
  return p.base + (p.offsets[static_cast<size_t>(lane)] + at) * p.element_bytes;
}

bool is_plain(const LanePlanes& p) { return p.dtype == DType::kF32 && p.rounding == OperandRounding::kNone; }

// Calls body(lane, lanes) for each run of lanes that lie side by side; whether there are few enough of them.
template <class Body>
void for_each_side_by_side(const LanePlanes& p, const Body& body) {
  for (int64_t l = 0; l < p.lanes;) {
    int64_t end = l + 1;
    while (end < p.lanes &&
           p.offsets[static_cast<size_t>(end)] == p.offsets[static_cast<size_t>(end) - 1] + 1)
      ++end;
    body(l, end - l);
    l = end;
  }
}

bool mostly_side_by_side(const LanePlanes& p) {
  int64_t runs = 0;
  for_each_side_by_side(p, [&](int64_t, int64_t) { ++runs; });
  return runs * 4 <= p.lanes;
}

std::array<float*, kernels::cpu::kMostPlaneLanes> buffer_rows(const LanePlanes& p, int64_t pitch,
                                                              float* buffer) {
  std::array<float*, kernels::cpu::kMostPlaneLanes> rows{};
  for (int64_t l = 0; l < p.lanes; ++l) rows[static_cast<size_t>(l)] = buffer + l * pitch;
  return rows;
}

std::array<float*, kernels::cpu::kMostPlaneLanes> plane_rows(const LanePlanes& p, int64_t at) {
  std::array<float*, kernels::cpu::kMostPlaneLanes> rows{};
  for (int64_t l = 0; l < p.lanes; ++l)
    rows[static_cast<size_t>(l)] = reinterpret_cast<float*>(address(p, l, at));
  return rows;
}

// The same pixels of the next block, where that lies near.
void prefetch_next(const LanePlanes& p, int64_t at, int64_t stride, int64_t count) {
  constexpr int64_t kNear = 16384;
  const int64_t next = p.lanes * p.step * p.element_bytes;
  if (stride != 1 || next <= 0 || next > kNear) return;
  for (int64_t l = 0; l < p.lanes; ++l)
    kernels::cpu::prefetch(address(p, l, at) + next, count * p.element_bytes);
}

bool one_run(const LaneRows& r) { return r.rows == 1 || r.row_stride == r.stride * r.width; }

}  // namespace

PlaneBlocks cut_into_plane_blocks(int64_t batch, int64_t channels, int64_t lanes) {
  PlaneBlocks cut;
  cut.lanes = lanes;
  cut.channels = channels;
  cut.planes = batch * channels;
  cut.blocks = ceil_div(cut.planes, cut.lanes);
  cut.period = std::min(cut.blocks, channels / std::gcd(channels, cut.lanes));
  return cut;
}

int64_t plane_floats(const problem::ConvPass& pass) {
  const auto& [d, h, w] = pass.axes;
  return d.x * h.x * w.x + d.y * h.y * w.y;
}

BlockTasks cut_into_block_tasks(const PlaneBlocks& blocks, const BlockWork& work) {
  const int64_t vectors = std::max<int64_t>(work.vectors, 1);
  const int64_t wanted =
      vectors_per_task(static_cast<double>(vectors) * static_cast<double>(blocks.blocks)) / vectors;
  const int64_t run = ceil_div(kRunFloats, std::max<int64_t>(work.floats, 1));
  const int64_t kept = kKeptFloats / std::max<int64_t>(work.kept, 1);
  BlockTasks cut;
  cut.columns = ceil_div(blocks.period, std::clamp<int64_t>(std::min({run, kept, wanted}), 1, blocks.period));
  cut.neighbours = ceil_div(blocks.period, cut.columns);
  cut.columns = ceil_div(blocks.period, cut.neighbours);
  cut.repeats = std::clamp<int64_t>(wanted / cut.neighbours, 1, blocks.repeats(0));
  return cut;
}

LanePlanes lane_planes(const problem::PassTensor& tensor, OperandRounding rounding, void* address,
                       int64_t lanes) {
  LanePlanes planes;
  planes.dtype = tensor.dtype;
  planes.rounding = rounding;
  planes.lanes = lanes;
  planes.element_bytes = static_cast<int64_t>(size_of(tensor.dtype));
  planes.base = static_cast<std::byte*>(address);
  return planes;
}

int64_t lane_buffer_floats(int64_t lanes) { return lanes * kBufferPlaces; }

void load_lanes(const LanePlanes& p, int64_t at, int64_t stride, int64_t count, float* buffer, float* out) {
  if (count == 1 && p.step == 1) return load_row(p.dtype, p.rounding, address(p, 0, at), 1, p.lanes, out);
  prefetch_next(p, at, stride, count);
  if (stride == 1 && is_plain(p)) return kernels::cpu::planes_to_lanes(plane_rows(p, at).data(), count, out);
  if (stride != 1 && mostly_side_by_side(p)) {
    for_each_side_by_side(p, [&](int64_t lane, int64_t lanes) {
      if (lanes == p.lanes && is_plain(p))
        return kernels::cpu::copy_lanes(reinterpret_cast<const float*>(address(p, lane, at)), stride, count,
                                        out);
      load_rows(p.dtype, p.rounding, address(p, lane, at), stride, count, lanes, out + lane, p.lanes);
    });
    return;
  }
  const int64_t pitch = std::min(kBufferPlaces, count);
  const auto rows = buffer_rows(p, pitch, buffer);
  for (int64_t i = 0; i < count; i += kBufferPlaces) {
    const int64_t places = std::min(kBufferPlaces, count - i);
    if (stride == 1 && p.step != 0)
      load_rows(p.dtype, p.rounding, address(p, 0, at + i), p.step, p.lanes, places, buffer, pitch);
    else
      for (int64_t l = 0; l < p.lanes; ++l)
        load_row(p.dtype, p.rounding, address(p, l, at + i * stride), stride, places,
                 rows[static_cast<size_t>(l)]);
    kernels::cpu::planes_to_lanes(rows.data(), places, out + i * p.lanes);
  }
}

void store_lanes(const LanePlanes& p, int64_t at, int64_t stride, int64_t count, float* buffer,
                 const float* in) {
  if (count == 1 && p.step == 1) return store_row(p.dtype, address(p, 0, at), 1, in, 1, p.lanes);
  prefetch_next(p, at, stride, count);
  if (stride == 1 && is_plain(p)) return kernels::cpu::lanes_to_planes(in, count, plane_rows(p, at).data());
  if (stride != 1 && mostly_side_by_side(p)) {
    for_each_side_by_side(p, [&](int64_t lane, int64_t lanes) {
      store_rows(p.dtype, address(p, lane, at), stride, in + lane, p.lanes, count, lanes);
    });
    return;
  }
  const int64_t pitch = std::min(kBufferPlaces, count);
  const auto rows = buffer_rows(p, pitch, buffer);
  for (int64_t i = 0; i < count; i += kBufferPlaces) {
    const int64_t places = std::min(kBufferPlaces, count - i);
    kernels::cpu::lanes_to_planes(in + i * p.lanes, places, rows.data());
    if (stride == 1 && p.step != 0)
      store_rows(p.dtype, address(p, 0, at + i), p.step, buffer, pitch, p.lanes, places);
    else
      for (int64_t l = 0; l < p.lanes; ++l)
        store_row(p.dtype, address(p, l, at + i * stride), stride, rows[static_cast<size_t>(l)], 1, places);
  }
}

void load_lane_rows(const LanePlanes& planes, const LaneRows& r, float* buffer, float* out) {
  if (one_run(r)) return load_lanes(planes, r.at, r.stride, r.rows * r.width, buffer, out);
  for (int64_t row = 0; row < r.rows; ++row)
    load_lanes(planes, r.at + row * r.row_stride, r.stride, r.width, buffer,
               out + row * r.width * planes.lanes);
}

void store_lane_rows(const LanePlanes& planes, const LaneRows& r, float* buffer, const float* in) {
  if (one_run(r)) return store_lanes(planes, r.at, r.stride, r.rows * r.width, buffer, in);
  for (int64_t row = 0; row < r.rows; ++row)
    store_lanes(planes, r.at + row * r.row_stride, r.stride, r.width, buffer,
                in + row * r.width * planes.lanes);
}

}  // namespace retrograd::engines::cpu

// SPDX-License-Identifier: Apache-2.0
// Boxes: how positions (batch and space) are cut into tasks. Pure functions of the problem.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

namespace retrograd::engines::cpu {

// Even pieces of at most `most`: how large they are, and how many.
std::pair<int64_t, int64_t> cut_evenly(int64_t total, int64_t most);

// Along (N, D, H, W).
using Positions = std::array<int64_t, 4>;
int64_t count_of(const Positions& positions);

struct BoxGrid {
  Positions total{};  // positions there are
  Positions box{};    // positions in a box; the last ones along an axis may hold fewer
  Positions boxes{};  // boxes along each axis

  int64_t count() const { return count_of(boxes); }
  struct Box {
    Positions first{};
    Positions size{};
  };
  Box at(int64_t index) const;
};

// "16 boxes of 1x1x14x56": for people.
std::string to_string(const BoxGrid& grid);

// Boxes of about `wanted` positions, whole rows first, then planes, volumes and images; even ones.
BoxGrid cut_into_boxes(const Positions& total, int64_t wanted);

}  // namespace retrograd::engines::cpu

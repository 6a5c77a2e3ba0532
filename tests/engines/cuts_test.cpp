// SPDX-License-Identifier: Apache-2.0
// How passes are cut, on every CPU that has a name: each cutting function on drawn passes that its engine
// accepts there. Every position, channel and weight belongs to one piece, tiles have widths that the vectors
// have, and what should stay in a cache has room in it.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/checked.h"
#include "base/machine.h"
#include "engines/cpu/cache_room.h"
#include "engines/cpu/dense/dense_blocking.h"
#include "engines/cpu/dense/grad_weight_blocking.h"
#include "engines/cpu/dense/tile_grad_weight_cut.h"
#include "engines/cpu/depthwise/depthwise_blocks.h"
#include "engines/cpu/depthwise/depthwise_channels.h"
#include "engines/cpu/depthwise/depthwise_lines.h"
#include "engines/cpu/depthwise/depthwise_planes.h"
#include "engines/cpu/few_channels/dots_cut.h"
#include "engines/cpu/few_channels/narrow_cut.h"
#include "engines/cpu/few_channels/stem_blocking.h"
#include "engines/cpu/gather_sides.h"
#include "engines/cpu/implementations.h"
#include "engines/cpu/machine_vectors.h"
#include "engines/cpu/winograd/winograd_gather.h"
#include "engines/cpu/winograd/winograd_grad_weight.h"
#include "problem/problem_text.h"
#include "support/generator/problem_generator.h"
#include "support/legal_problem.h"

namespace retrograd::engines::cpu {
namespace {

using problem::ConvPass;

// `pieces` of `size` cover `total`, and none of them is empty.
void expect_cover(int64_t total, int64_t size, int64_t pieces, const char* what) {
  EXPECT_GE(size * pieces, total) << what;
  EXPECT_LT(size * (pieces - 1), total) << what;
}

void expect_grid(const BoxGrid& grid) {
  for (size_t axis = 0; axis < 4; ++axis)
    expect_cover(grid.total[axis], grid.box[axis], grid.boxes[axis], "boxes");
  if (grid.count() > 4096) return;
  int64_t positions = 0;
  for (int64_t i = 0; i < grid.count(); ++i) positions += count_of(grid.at(i).size);
  EXPECT_EQ(positions, count_of(grid.total));
}

void expect_width(int64_t width, const VectorShape& vectors, int64_t narrowest) {
  const auto widths = vectors.tile_widths();
  EXPECT_NE(std::find(widths.begin(), widths.end(), width), widths.end()) << width;
  EXPECT_GE(width, narrowest);
}

// Tiles one behind the other, as width_at() says, cover `channels`.
template <class Cut>
void expect_tiles(const Cut& cut, int64_t channels, const VectorShape& vectors) {
  int64_t at = 0;
  for (; at < channels; at += cut.width_at(at)) expect_width(cut.width_at(at), vectors, cut.narrowest);
  EXPECT_EQ(at, vectors.covering_lanes(channels, cut.narrowest));
}

void check_dense_gather(const ConvPass& drawn, const Machine& machine) {
  const ConvPass pass = joined_rows(drawn);
  const VectorShape vectors = vectors_of(machine);
  const CacheRoom room = room_in(machine.cpu.caches);
  for (const int64_t narrowest : {int64_t{0}, vectors.floats}) {
    const DenseBlocking cut = plan_dense_gather(pass, vectors, room, narrowest);
    expect_grid(cut.grid);
    expect_tiles(cut, cut.channels, vectors);
    expect_width(cut.width, vectors, 0);
    EXPECT_EQ(cut.m_block % cut.width, 0);
    expect_cover(cut.channels, cut.m_block, cut.m_blocks, "result channels");
    // The phases have every place of the result once.
    int64_t places = 0, all = 1, taps = 0;
    for (const DensePhase& phase : cut.phases) {
      places += phase.axes[0].count * phase.axes[1].count * phase.axes[2].count;
      EXPECT_EQ(phase.taps_before, taps);
      taps += phase.taps;
      for (size_t axis = 0; axis < 3; ++axis)
        EXPECT_LE(phase.axes[axis].count, cut.grid.total[axis + 1]) << axis;
    }
    for (const problem::Window& w : pass.axes) all *= is_forward(pass) ? w.y : w.x;
    EXPECT_EQ(places, all);
    EXPECT_EQ(taps, cut.all_taps);
    // Panels lie one behind the other.
    EXPECT_GE(cut.panel_floats,
              vectors.covering_lanes(cut.channels, narrowest) * source_channels(pass) * cut.all_taps);
    // Sums, and strips, keep to their part of L2, or cannot be cut any further.
    const auto phases = static_cast<int64_t>(cut.phases.size());
    EXPECT_TRUE(count_of(cut.grid.box) * phases * cut.m_block <= room.l2 / 2 || cut.m_block == cut.width);
    EXPECT_TRUE(cut.grid.box[0] * cut.plane() * cut.channels_per_block <= room.l2 / (cut.in_place ? 1 : 4) ||
                cut.channels_per_block == 1);
    EXPECT_GE(cut.channels_per_block, 1);
    EXPECT_LE(cut.channels_per_block, source_channels(pass));
  }
}

void check_grad_weight(const ConvPass& drawn, const Machine& machine) {
  const ConvPass pass = without_idle_places(drawn);
  const VectorShape vectors = vectors_of(machine);
  for (const int64_t narrowest : {int64_t{0}, vectors.floats}) {
    const GradWeightBlocking cut = plan_grad_weight(pass, vectors, vectors, narrowest);
    const int64_t x = pass.x_channels_per_group(), y = pass.y_channels_per_group();
    expect_grid(cut.grid);
    EXPECT_EQ(cut.lanes, cut.lanes_are_x ? x : y);
    expect_tiles(cut, cut.lanes, vectors);
    int64_t lane = 0;
    for (int64_t block = 0; block < cut.lane_blocks; ++block, lane += cut.width_at(lane))
      EXPECT_EQ(cut.lane_first(block), lane);
    EXPECT_GE(lane, cut.lanes);
    expect_cover(cut.lanes_are_x ? y : x, cut.row_block, cut.row_blocks, "rows");
    expect_cover(cut.grid.count(), cut.boxes_per_split, cut.splits, "splits");
    EXPECT_LE(count_of(cut.grid.box), kPositionsPerBox);  // lists of them are on the stack
  }
}

void check_places(const ConvPass& pass, const Machine&) {
  const TileGradWeightCut cut(pass);
  expect_grid(cut.grid);
  expect_cover(pass.x_channels_per_group(), cut.row_block, cut.row_blocks, "x channels");
  expect_cover(pass.y_channels_per_group(), cut.lane_block, cut.lane_blocks, "y channels");
  expect_cover(cut.grid.count(), cut.boxes_per_split, cut.splits, "splits");
  EXPECT_EQ(cut.taps * cut.folded_taps,
            cut.pass.axes[0].kernel * cut.pass.axes[1].kernel * cut.pass.axes[2].kernel);
  EXPECT_LE(cut.numbers, kMostPieces * kPiece);  // lists of pieces are on the stack
  // Whatever a box reads at the tap that reaches furthest is in the copy of a channel.
  int64_t reach = 0;
  const TileSpace space(cut.axes, cut.grid.box);
  for (size_t axis = 0; axis < 3; ++axis) reach += cut.axes[axis].halo * space.step[axis + 1];
  const Positions& box = cut.grid.box;
  int64_t last = (box[0] - 1) * space.step[0];
  for (size_t axis = 0; axis < 3; ++axis) last += (box[axis + 1] - 1) * space.step[axis + 1];
  EXPECT_LT(last, cut.numbers);
  EXPECT_LE(last / kPiece * kPiece + kPiece + reach, cut.pitch);
  EXPECT_EQ(space.step[2] % 2, 0);
  EXPECT_EQ(cut.pitch % (2 * kPiece), kPiece);
}

void check_narrow(const ConvPass& pass, const Machine& machine) {
  const VectorShape vectors = vectors_of(machine);
  const NarrowCut cut = plan_narrow(pass, vectors, vectors);
  expect_grid(cut.grid);
  const auto units = static_cast<int64_t>(cut.units.size()), ways = static_cast<int64_t>(cut.ways.size());
  expect_cover(units, cut.units_per_part, cut.parts(), "units");
  // Each result is in one call, and has a row of sums of its own in its part.
  int64_t results = 0, weights = 0;
  for (int64_t part = 0; part < cut.parts(); ++part) {
    std::vector<bool> rows(static_cast<size_t>(cut.rows_per_part()));
    for (size_t i = cut.first_call[static_cast<size_t>(part)];
         i < cut.first_call[static_cast<size_t>(part) + 1]; ++i) {
      const NarrowCall& call = cut.calls[i];
      const NarrowProduct& product = cut.products[call.product];
      EXPECT_LE(call.count, vectors.row_results());
      EXPECT_EQ(call.weights, weights);
      weights += call.count * cut.source_channels * product.terms();
      results += call.count;
      for (int64_t r = 0; r < call.count; ++r) {
        const int64_t row = call.row + r * product.row_step;
        ASSERT_LT(row, cut.rows_per_part());
        EXPECT_FALSE(rows[static_cast<size_t>(row)]) << row;
        rows[static_cast<size_t>(row)] = true;
      }
    }
  }
  EXPECT_EQ(results, units * ways);
  EXPECT_EQ(weights, cut.group_weights);
  EXPECT_EQ(cut.groups_per_task % cut.groups_at_once, 0);
  EXPECT_EQ(cut.tasks, ceil_div(pass.groups, cut.groups_per_task) * cut.parts() * cut.grid.count());
  EXPECT_GE(cut.channels_per_block, 1);
  EXPECT_LE(cut.channels_per_block, cut.source_channels);
  // Whole vectors behind a row stay within the sums of its plane.
  EXPECT_GE(cut.plane_pitch, (cut.grid.box[2] - 1) * cut.row_pitch + cut.grid.box[3] + vectors.row_overrun());
}

void check_dots(const ConvPass& pass, const Machine& machine) {
  const VectorShape vectors = vectors_of(machine);
  const DotsCut cut = cut_dots(pass, vectors);
  expect_grid(cut.grid);
  EXPECT_LE(cut.call_channels, vectors.dot_channels());
  expect_cover(pass.y_channels_per_group(), cut.y_block, cut.y_blocks, "y channels");
  expect_cover(pass.x_channels_per_group(), cut.x_block, cut.x_blocks, "x channels");
  expect_cover(cut.grid.count(), cut.boxes_per_split, cut.splits, "splits");
  if (cut.grid.boxes[3] > 1) {
    EXPECT_EQ(cut.grid.box[3] % vectors.dot_lanes(), 0);
  }
  if (cut.copies_y()) {
    EXPECT_EQ(cut.y_stride % vectors.dot_lanes(), 0);
  }
  if (cut.groups_at_once > 1) {
    EXPECT_EQ(cut.y_blocks * cut.x_blocks, 1);
  }
}

void check_stem(const ConvPass& pass, const Machine& machine) {
  const int64_t width = vectors_of(machine).tile_width();
  const StemBlocking cut = plan_stem(pass, width, width);
  expect_grid(cut.grid);
  EXPECT_LE(count_of(cut.grid.box), kStemPositionsPerBox);  // lists of them are on the stack
  EXPECT_EQ(cut.y_block % width, 0);
  expect_cover(pass.y_channels_per_group(), cut.y_block, cut.y_blocks, "y channels");
  expect_cover(pass.x_channels_per_group(), cut.x_block, cut.x_blocks, "x channels");
  expect_cover(cut.grid.count(), cut.boxes_per_split, cut.splits, "splits");
}

void check_winograd_gather(const ConvPass& pass, const Machine& machine) {
  const WinogradGatherCut cut = cut_winograd_gather(pass, vectors_of(machine).tile_width());
  expect_cover(cut.tiles_w, cut.columns, cut.blocks_w, "columns");
  expect_cover(cut.tiles_h, cut.rows, cut.blocks_h, "rows");
  expect_cover(cut.planes, cut.block_planes, cut.blocks_p, "planes");
  const problem::Window &h = pass.axes[1], &w = pass.axes[2];
  expect_cover(is_forward(pass) ? h.y : h.x, 4, cut.tiles_h, "tiles along H");
  expect_cover(is_forward(pass) ? w.y : w.x, 4, cut.tiles_w, "tiles along W");
  EXPECT_LE(cut.terms_at_once, source_channels(pass));
  EXPECT_LE(cut.blocks_per_chunk, pass.groups * cut.blocks());
  // 12 MiB of transformed data, or the fewest tiles that pay for their kernels.
  const int64_t floats =
      cut.block_tiles() * 36 * source_channels(pass) * static_cast<int64_t>(cut.depth.taps.size());
  EXPECT_TRUE(floats <= 3 << 20 || cut.block_tiles() <= 12) << floats;
}

void check_winograd_grad_weight(const ConvPass& pass, const Machine& machine) {
  const int64_t lanes = vectors_of(machine).winograd_lanes();
  const WinogradGradWeightCut cut = cut_winograd_grad_weight(pass, lanes);
  expect_cover(cut.rows, cut.rows_per_chunk, cut.chunks, "rows");
  expect_cover(cut.chunk_tiles(), cut.tiles_per_split, cut.splits, "tiles");
  expect_cover(pass.x_channels_per_group(), cut.x_block, cut.x_blocks, "x channels");
  expect_cover(pass.y_channels_per_group(), 2 * lanes, cut.y_blocks, "y channels");
  EXPECT_EQ(cut.x_block % lanes, 0);
  EXPECT_GE(cut.x_tile, cut.x_block);
  EXPECT_LE(cut.rows_per_strip, cut.rows_per_chunk);
}

void check_planes(const ConvPass& pass, const Machine& machine) {
  const int64_t lanes = vectors_of(machine).plane_lanes();
  const PlaneBlocks cut =
      cut_into_plane_blocks(pass.batch, std::max(pass.x_channels, pass.y_channels), lanes);
  EXPECT_EQ(cut.lanes, lanes);
  int64_t planes = 0, blocks = 0;
  for (int64_t block = 0; block < cut.blocks; ++block) {
    EXPECT_GT(cut.used(block), 0);
    planes += cut.used(block);
  }
  EXPECT_EQ(planes, cut.planes);
  for (int64_t first = 0; first < cut.period; ++first) blocks += cut.repeats(first);
  EXPECT_EQ(blocks, cut.blocks);
  // Blocks a period apart have the same channels.
  if (cut.blocks > cut.period) {
    EXPECT_EQ(cut.period * lanes % cut.channels, 0);
  }
}

void check_channels(const ConvPass& pass, const Machine& machine) {
  const int64_t lanes = vectors_of(machine).plane_lanes();
  for (const int64_t wanted : {1, 16, 100, 1 << 20}) {
    const ChannelChunks cut = cut_channels(pass.groups, lanes, wanted);
    int64_t next = 0;
    for (int64_t chunk = 0; chunk < cut.count(); ++chunk) {
      const problem::Range channels = cut.at(chunk);
      EXPECT_EQ(channels.begin, next);
      EXPECT_GE(channels.size(), lanes);
      EXPECT_LE(channels.size(), cut.most_channels());
      next = channels.end;
      // Vectors of a chunk begin inside it, and reach its end.
      const int64_t last = channel_blocks(cut, channels.size()) - 1;
      EXPECT_EQ(block_start(cut, channels.size(), last) + lanes, channels.size());
    }
    EXPECT_EQ(next, pass.groups);
  }
}

void check_images(const ConvPass& pass, const Machine&) {
  const auto check = [&](const PlaneWork& work) {
    const ImageCut cut = cut_into_image_blocks(pass.batch, pass.groups, work);
    int64_t planes = 0;
    for (int64_t c = 0; c < cut.channel_blocks(); ++c)
      for (int64_t n = 0; n < cut.image_blocks(); ++n) {
        const ImageBlock block = cut.task(c, n);
        EXPECT_TRUE(block.images > 0 && block.channels > 0);
        planes += block.images * block.channels;
      }
    EXPECT_EQ(planes, pass.batch * pass.groups);
    EXPECT_LE(cut.channels_per_part, cut.channels_per_task);
  };
  for (const int64_t vectors : {0, 1, 1000, 100000})
    for (const int64_t floats : {0, 1, 100, 4096, 1 << 20})
      for (const int64_t kept : {1, 100, 1 << 16})
        check({.vectors = vectors, .floats = floats, .kept = kept, .setup = kept});
}

// Small planes of many images: a task reads long runs of memory, and there are few tasks.
TEST(ImageCutTest, TasksReadLongRuns) {
  for (const int64_t batch : {1, 8, 100, 10000})
    for (const int64_t channels : {3, 96, 416, 3000}) {
      const ImageCut cut =
          cut_into_image_blocks(batch, channels, {.vectors = 77, .floats = 98, .kept = 9, .setup = 9});
      EXPECT_GE(cut.channels_per_task * 98, std::min<int64_t>(channels * 98, 2048));
      EXPECT_LE(cut.channel_blocks() * cut.image_blocks(), 256);
      EXPECT_LE(cut.channels_per_task * 9, 8192);
    }
}

void check_lines(const ConvPass& pass, const Machine& machine) {
  const VectorShape vectors = vectors_of(machine);
  const AxisPhase phase = forward_phase(pass.axes[2]);
  const LineChunks chunks(phase, vectors);
  int64_t next = 0;
  for (int64_t chunk = 0; chunk < chunks.count(); ++chunk) {
    EXPECT_EQ(chunks.at(chunk).begin, next);
    EXPECT_LE(chunks.at(chunk).size(), chunks.most_positions());
    next = chunks.at(chunk).end;
  }
  EXPECT_EQ(next, phase.count);
  const int64_t reach = phase.highest_offset() - phase.lowest_offset();
  EXPECT_GE(chunks.source_floats(), chunks.most_positions() + reach + vectors.floats);
}

struct Check {
  const char* name;
  const Candidate& (*engine)();  // whose passes these are
  void (*check)(const ConvPass& pass, const Machine& machine);
};
constexpr Check kChecks[] = {
    {"dense_gather", dense_gather, check_dense_gather},
    {"dense_grad_weight", dense_grad_weight, check_grad_weight},
    {"amx_places_grad_weight", amx_places_grad_weight, check_places},
    {"narrow_gather", narrow_gather, check_narrow},
    {"narrow_grad_weight", narrow_grad_weight, check_dots},
    {"stem_grad_weight", stem_grad_weight, check_stem},
    {"winograd_gather", winograd_gather, check_winograd_gather},
    {"winograd_grad_weight", winograd_grad_weight, check_winograd_grad_weight},
    {"depthwise_gather", depthwise_gather, check_planes},
    {"depthwise_grad_weight", depthwise_grad_weight, check_planes},
    {"depthwise_channels_gather", depthwise_channels_gather, check_channels},
    {"depthwise_channels_grad_weight", depthwise_channels_grad_weight, check_channels},
    {"depthwise_wide_gather", depthwise_wide_gather, check_images},
    {"depthwise_wide_grad_weight", depthwise_wide_grad_weight, check_images},
    {"depthwise_line_grad_weight", depthwise_line_grad_weight, check_lines},
};

class CutsTest : public testing::TestWithParam<Check> {
 protected:
  // Problems of tests and of networks; all are planned for every CPU.
  static const std::vector<problem::Request>& drawn() {
    static const std::vector<problem::Request> requests = [] {
      std::vector<problem::Request> list;
      test::ProblemGenerator small(71), large(72, test::GeneratorOptions::network());
      for (int i = 0; i < 2000; ++i) {
        list.push_back(*test::to_request(small.conv()));
        list.push_back(*test::to_request(large.conv()));
      }
      return list;
    }();
    return requests;
  }
};

TEST_P(CutsTest, EveryPieceOnceOnEveryCpu) {
  for (const std::string_view name : machine_names()) {
    const Machine machine = *named_machine(name);
    if (machine.kind != Machine::Kind::kCpu) continue;
    int checked = 0;
    for (const problem::Request& request : drawn())
      for (const problem::Pass& pass : test::legal_problem(request).passes) {
        if (!GetParam().engine().supports(pass, machine).accepted()) continue;
        SCOPED_TRACE(std::string(name) + ", " + problem::to_text(request) + ", " +
                     std::string(name_of(pass)));
        GetParam().check(std::get<ConvPass>(pass), machine);
        ++checked;
        if (HasFailure()) return;
      }
    const bool vectors_needed = std::string_view(GetParam().name).find("wide") != std::string_view::npos ||
                                std::string_view(GetParam().name).find("channels") != std::string_view::npos;
    const bool has_them =
        GetParam().check == check_channels ? machine.cpu.vector_floats >= 4 : machine.cpu.masked_loads;
    const bool tiles_missing = GetParam().check == check_places && !machine.cpu.bf16_tiles;
    if (tiles_missing || (vectors_needed && !has_them))
      EXPECT_EQ(checked, 0) << name;
    else
      EXPECT_GT(checked, 0) << name;
  }
}
INSTANTIATE_TEST_SUITE_P(Cuts, CutsTest, testing::ValuesIn(kChecks),
                         [](const auto& test) { return std::string(test.param.name); });

// Caches may change boxes, never the pieces that sums are made of: those cuts do not see them. Threads are
// seen by none; `selection_table --try` compares whole steps.
TEST(CachesTest, TilesDoNotDependOnCaches) {
  test::ProblemGenerator generator(73, test::GeneratorOptions::network());
  Machine small = *named_machine("zen4"), large = small;
  for (Cache& cache : small.cpu.caches.level) cache.bytes /= 4;
  for (Cache& cache : large.cpu.caches.level) cache.bytes *= 8;
  int checked = 0;
  for (int i = 0; i < 200; ++i)
    for (const problem::Pass& pass : test::legal_problem(*test::to_request(generator.conv())).passes) {
      const auto* conv = std::get_if<ConvPass>(&pass);
      if (conv == nullptr || !dense_gather().supports(pass, small).accepted()) continue;
      const DenseBlocking one = plan_dense_gather(*conv, vectors_of(small), room_in(small.cpu.caches));
      const DenseBlocking other = plan_dense_gather(*conv, vectors_of(large), room_in(large.cpu.caches));
      EXPECT_EQ(one.width, other.width);
      EXPECT_EQ(one.panel_floats, other.panel_floats);
      EXPECT_EQ(one.images_inside, other.images_inside);
      EXPECT_EQ(one.skips_dead_taps, other.skips_dead_taps);
      EXPECT_EQ(one.crosses_cuts, other.crosses_cuts);
      ++checked;
    }
  EXPECT_GT(checked, 50);
}

// The stride of one place may be any number: a column of such rows is a row all the same.
TEST(JoinedRowsTest, RowsOfOnePlace) {
  const problem::Problem problem = test::legal_problem(
      problem::parse_request("conv input=2x4x6x1@24x1x4x5 weight=8x4x1x1 grad_output=2x8x6x1@48x1x8x0 mask=w")
          .value());
  const ConvPass pass = joined_rows(std::get<ConvPass>(problem.passes.front()));
  EXPECT_EQ(pass.axes[1].x, 1);
  EXPECT_EQ(pass.axes[2].x, 6);
  EXPECT_EQ(pass.x.strides[4], 4);
  EXPECT_EQ(pass.y.strides[4], 8);
}

}  // namespace
}  // namespace retrograd::engines::cpu

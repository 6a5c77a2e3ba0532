// SPDX-License-Identifier: Apache-2.0
// The problem generator: legal problems of every kind, for tests, fuzzers, sweeps and GPUs. Equal seeds and
// options give equal problems.
#pragma once

#include "support/generator/draw.h"
#include "support/generator/problem_sketch.h"

namespace retrograd::test {

struct GeneratorOptions {
  enum class Mode : unsigned char {
    kTruth,   // small and odd, aimed at the engines' conditions: sizes near those of vectors, any strides
    kNetwork  // what networks have, row-major or channels-last; bounded by operations and elements
  };
  Mode mode = Mode::kTruth;
  double most_products = 3e4;  // of one gradient: a GFLOP is 5e8 of them
  double most_elements = 2e5;  // of all tensors together
  bool all_dtypes = true;      // otherwise f32 only
  bool any_strides = true;     // otherwise row-major
  int forward = 0;             // percent of problems that are forward ones

  // Bounds of a sweep: 40 GFLOP for both gradients, 1.5e8 elements.
  static GeneratorOptions network() {
    return {.mode = Mode::kNetwork, .most_products = 1e10, .most_elements = 1.5e8};
  }
};

// What the generator is made of; each fills in the sizes and attributes of a problem, and those types and
// layouts that it is about.
struct ShapeClass {
  const char* name;
  int64_t weight;  // of all in its table
  void (*draw)(Draw& draw, ProblemSketch& sketch);
  double room = 1;   // times the bound of products: what the engines that it is aimed at need to accept
  int layouts = 70;  // percent whose layouts are drawn; the others keep the class's own
};

class ProblemGenerator {
 public:
  explicit ProblemGenerator(uint64_t seed, const GeneratorOptions& options = {})
      : draw_(seed), options_(options) {}

  ProblemSketch conv();
  ProblemSketch conv_tbc();
  ProblemSketch avgpool();
  ProblemSketch any();  // of the three, mostly convolutions

 private:
  ProblemSketch first_legal(ProblemKind kind, std::span<const ShapeClass> classes);
  bool fit(ProblemSketch& sketch, double most_products);

  Draw draw_;
  GeneratorOptions options_;
};

// The tables that classes are drawn from.
std::span<const ShapeClass> truth_shapes();
std::span<const ShapeClass> network_shapes();
std::span<const ShapeClass> truth_pools();
std::span<const ShapeClass> network_pools();
// Types, mask and math mode of a sketch that has its sizes.
void draw_types(Draw& draw, GeneratorOptions::Mode mode, ProblemSketch& sketch);
void draw_layouts(Draw& draw, GeneratorOptions::Mode mode, ProblemSketch& sketch);

}  // namespace retrograd::test

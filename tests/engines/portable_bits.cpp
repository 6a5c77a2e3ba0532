// SPDX-License-Identifier: Apache-2.0
// Bits that do not depend on the machine (RETROGRAD_BITS=portable, docs/numerics.md), on drawn problems:
//
//   portable_bits [PROBLEMS [SEED]] [--fast]     a process for every instruction set that this machine has
//   portable_bits --hashes PROBLEMS SEED         what one of them prints: a line for each result
//
// Every implementation that takes a pass must give the same bits on all instruction sets with any number of
// threads, and all must choose the same one; a NaN is a NaN. The sum over all results is printed, so that
// machines can be compared. With --fast bits are not portable, and it fails unless some differ.
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/settings.h"
#include "engines/machines.h"
#include "engines/registry.h"
#include "kernels/cpu/dense/cell_pairs.h"
#include "kernels/cpu/dense/cell_tiles.h"
#include "kernels/cpu/targets.h"
#include "plan/plan.h"
#include "problem/problem_text.h"
#include "runtime/thread_pool.h"
#include "support/generator/operand_data.h"
#include "support/generator/problem_generator.h"

namespace retrograd::test {
namespace {

struct Drawn {
  ProblemSketch sketch;
  DataSketch data;
};

Drawn draw_problem(uint64_t seed, int64_t number) {
  struct Size {
    double products, elements;
    int64_t weight;
  };
  constexpr Size kSizes[] = {{6e3, 6e4, 60}, {6e4, 2e5, 33}, {2e6, 5e5, 7}};
  Draw draw(seed * 0x9E3779B97F4A7C15U + static_cast<uint64_t>(number));
  const Size& size = draw.weighted(kSizes);
  GeneratorOptions options;
  options.most_products = size.products;
  options.most_elements = size.elements;
  options.forward = 35;
  if (draw.chance(30)) options.mode = GeneratorOptions::Mode::kNetwork;
  Drawn drawn{ProblemGenerator(draw.bits(), options).any(), draw_data(draw)};
  drawn.data.numbers = DataSketch::Numbers::kNormal;
  return drawn;
}

constexpr uint64_t kFirst = 0xcbf29ce484222325U;
uint64_t mixed(uint64_t hash, uint64_t word) { return (hash ^ word) * 0x100000001b3U; }

uint64_t hash_of(const HostTensor& tensor) {
  const std::vector<uint32_t> bits = tensor.bits();
  uint64_t hash = kFirst;
  size_t i = 0;
  tensor.for_each([&](const Dims& index) {
    hash = mixed(hash, std::isnan(tensor.get(index)) ? 0xffff'ffffU : bits[i]);
    ++i;
  });
  return hash;
}

const Machine& this_machine() { return engines::machine_of(runtime::DeviceKind::kCpu); }

uint64_t run(const engines::Step& step, const problem::Pass& pass, Operands& operands) {
  runtime::ExecutionContext context{.pool = &runtime::ThreadPool::instance()};
  HostTensor& result = *operands[result_of(pass).operand];
  result.poison();
  const size_t bytes = step.workspace_bytes() / 64 * 64 + 64;
  const std::unique_ptr<void, void (*)(void*)> workspace(std::aligned_alloc(64, bytes), std::free);
  step.run(operands.bindings(), static_cast<std::byte*>(workspace.get()), context);
  return hash_of(result);
}

// "number operand implementation hash" for every pass and implementation, and the chosen ones.
void print_hashes(int64_t problems, uint64_t seed) {
  const auto candidates = engines::candidates(runtime::DeviceKind::kCpu);
  for (int64_t number = 0; number < problems; ++number) {
    const Drawn drawn = draw_problem(seed, number);
    const problem::Request request = *to_request(drawn.sketch);
    const auto problem = problem::judge(request);
    if (!problem.is_ok()) continue;
    Operands operands(request);
    fill(operands, drawn.data);
    for (const problem::Pass& pass : problem.value().passes) {
      const auto line = [&](std::string_view who, uint64_t hash) {
        fmt::print("{} {} {} {:016x}\n", number, name_of(result_of(pass).operand), who, hash);
      };
      for (const plan::Answer& answer : plan::judge(candidates, pass, this_machine())) {
        if (!answer.support.accepted()) continue;
        line(fmt::format("chosen:{}", answer.candidate->name()), 0);
        break;
      }
      for (const engines::Candidate* candidate : candidates)
        if (candidate->supports(pass, this_machine()).accepted())
          line(candidate->name(), run(*candidate->make_step(pass, this_machine()), pass, operands));
    }
  }
}

using Lines = std::map<std::string, std::string>;  // "number operand implementation": hash

struct Run {
  std::string isa;
  int threads;
  Lines lines;
};

// What a process of this program prints.
std::string output_of(const std::string& self, std::string_view bits, std::string_view isa, int threads,
                      std::string_view arguments) {
  const std::string command = fmt::format(
      "env RETROGRAD_BITS={} RETROGRAD_CPU_ISA={} RETROGRAD_NUM_THREADS={} RETROGRAD_TUNING= '{}' {}", bits,
      isa, threads, self, arguments);
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return "";
  std::string all;
  char buffer[4096];
  while (const size_t size = std::fread(buffer, 1, sizeof buffer, pipe)) all.append(buffer, size);
  return pclose(pipe) == 0 ? all : "";
}

Lines lines_of(const std::string& text) {
  Lines lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at), blank = text.rfind(' ', end);
    lines[text.substr(at, blank - at)] = text.substr(blank + 1, end - blank - 1);
    at = end + 1;
  }
  return lines;
}

// Differences from the first run, each implementation told of a few times.
int64_t compare(const std::vector<Run>& runs, uint64_t seed, bool tell) {
  int64_t differences = 0;
  std::map<std::string, int> told;
  const auto differs = [&](const Run& run, const std::string& key, const std::string& what) {
    ++differences;
    const std::string who = key.substr(key.rfind(' ') + 1);
    constexpr int kTold = 3;
    if (!tell || ++told[who] > kTold) return;
    const Drawn drawn = draw_problem(seed, std::atoll(key.c_str()));
    fmt::print("{} with {} threads: {} {}\n  \"{}\", {}\n", run.isa, run.threads, key, what,
               problem::to_text(*to_request(drawn.sketch)), to_string(drawn.data));
  };
  for (const Run& run : runs) {
    for (const auto& [key, hash] : runs.front().lines) {
      const auto found = run.lines.find(key);
      if (found == run.lines.end()) {
        differs(run, key, fmt::format("is missing, {} has it", runs.front().isa));
      } else if (found->second != hash) {
        differs(run, key, fmt::format("has other bits than on {}", runs.front().isa));
      }
    }
    for (const auto& [key, hash] : run.lines)
      if (!runs.front().lines.contains(key)) differs(run, key, "is on none other");
  }
  return differences;
}

int compare_all(const std::string& self, int64_t problems, uint64_t seed, bool fast) {
  // Names that mean the same on this machine run once.
  std::map<std::string, std::string> isas;
  for (const std::string_view isa : kCpuIsas)
    isas.insert_or_assign(output_of(self, "fast", isa, 1, "--instructions"), std::string(isa));
  isas.erase("");
  std::vector<Run> runs;
  const std::string arguments = fmt::format("--hashes {} {}", problems, seed);
  for (const auto& [instructions, isa] : isas) {
    constexpr int kThreads[] = {1, 2, 7};
    const int threads = kThreads[runs.size() % std::size(kThreads)];
    const std::string bits = fast ? "fast" : "portable";
    runs.push_back({isa, threads, lines_of(output_of(self, bits, isa, threads, arguments))});
    uint64_t sum = kFirst;
    for (const auto& [key, hash] : runs.back().lines)
      for (const char c : key + hash) sum = mixed(sum, static_cast<unsigned char>(c));
    fmt::print("{:<12} {} threads, {} results, {:016x}\n", isa, threads, runs.back().lines.size(), sum);
    if (runs.back().lines.empty()) return 1;
  }
  const int64_t differences = compare(runs, seed, !fast);
  fmt::print("{} problems, {} instruction sets, {} differences\n", problems, runs.size(), differences);
  return (differences > 0) == fast ? 0 : 1;
}

}  // namespace
}  // namespace retrograd::test

int main(int argc, char** argv) {
  using namespace retrograd;
  std::vector<std::string> words(argv + 1, argv + argc);
  const bool fast = std::erase(words, "--fast") > 0, hashes = std::erase(words, "--hashes") > 0;
  if (std::erase(words, "--instructions") > 0) {
    (void)test::this_machine();
    fmt::print("{} {} {} {}\n", kernels::cpu::target_name(), kernels::cpu::has_bf16_products(),
               kernels::cpu::has_tiles(kernels::cpu::CellType::kBf16),
               kernels::cpu::has_tiles(kernels::cpu::CellType::kF16));
    return 0;
  }
  const int64_t problems = words.empty() ? 100 : std::atoll(words[0].c_str());
  const uint64_t seed =
      words.size() < 2 ? std::random_device()() : std::strtoull(words[1].c_str(), nullptr, 10);
  if (words.size() > 2 || problems <= 0) {
    fmt::print(stderr, "portable_bits [PROBLEMS [SEED]] [--fast|--hashes]\n");
    return 2;
  }
  if (hashes) {
    test::print_hashes(problems, seed);
    return 0;
  }
  fmt::print("portable_bits {} {}\n", problems, seed);
  std::fflush(stdout);
  return test::compare_all(argv[0], problems, seed, fast);
}

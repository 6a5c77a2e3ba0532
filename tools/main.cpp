// SPDX-License-Identifier: Apache-2.0
// Entry of the command-line program `retrograd`.
#include <fmt/format.h>

#include <cstdio>
#include <vector>

#include "commands.h"

namespace {

constexpr const char* kHelp = R"(retrograd: look into the backward operators of libretrograd

  retrograd explain "<problem>"                  is it legal, which engine takes which pass, how much workspace
  retrograd bench [--seconds S] ["<problem>"…]   time problems (a short list of ours when none is given)

A problem is one line, as RETROGRAD_VERBOSE=call and error messages print it:
  conv input=2x3x10x10 weight=6x3x3x3 stride=1x2 padding=0x1 dilation=2x2
  conv input=2x4x6x6 weight=4x3x3x3 stride=2x2 padding=1x1 output_padding=1x1 transposed=1 dtype=bf16
  conv_tbc input=5x1x2 weight=1x2x2 pad=0
  avgpool input=2x5x77x89 kernel=5x3 stride=4x2 padding=2x1 ceil=1
)";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string_view> arguments(argv + 1, argv + argc);
  const std::string_view command = arguments.empty() ? "" : arguments[0];
  if (command == "--help" || command == "-h" || command == "help") {
    fmt::print("{}", kHelp);
    return 0;
  }
  if (!arguments.empty()) {
    const auto rest = retrograd::tools::Arguments(arguments).subspan(1);
    if (command == "explain") return retrograd::tools::explain(rest);
    if (command == "bench") return retrograd::tools::bench(rest);
  }
  fmt::print(stderr, "retrograd: '{}' is not a command, expected explain or bench\n\n{}", command, kHelp);
  return 2;
}

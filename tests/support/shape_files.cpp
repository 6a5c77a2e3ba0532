// SPDX-License-Identifier: Apache-2.0
// Reads the folder that the variable RETROGRAD_SHAPES_DIR names, or the compile definition of that name.
#include "support/shape_files.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "problem/problem.h"
#include "problem/problem_text.h"

namespace retrograd::test {

std::vector<NamedRequest> read_shape_files() {
  const char* const elsewhere = std::getenv("RETROGRAD_SHAPES_DIR");
  const std::string folder = elsewhere != nullptr ? elsewhere : RETROGRAD_SHAPES_DIR;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".txt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<NamedRequest> all;
  for (const auto& file : files) {
    std::ifstream in(file);
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      line = line.substr(0, line.find('#'));
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = file.filename().string() + ":" + std::to_string(number);
      auto request = problem::parse_request(line);
      EXPECT_TRUE(request.is_ok()) << place << ": " << request.status().message();
      if (request.is_ok()) all.push_back({place, std::move(request).value()});
    }
  }
  EXPECT_FALSE(all.empty()) << "no problems in " << folder;
  return all;
}

std::optional<problem::Request> in_type(const problem::Request& request, DType dtype) {
  problem::Request typed = request;
  const auto set = [](auto& view, DType to) {
    if constexpr (requires { view.has_value(); }) {
      if (view) view->dtype = to;
    } else {
      view.dtype = to;
    }
  };
  const DType result = is_8bit(dtype) ? DType::kF32 : dtype;
  std::visit(
      [&](auto& r) {
        set(r.input, dtype);
        set(r.grad_output, dtype);
        set(r.grad_input, dtype);
        if constexpr (requires { r.weight; }) {
          set(r.weight, dtype);
          set(r.grad_weight, dtype == DType::kE4M3 ? result : dtype);
          set(r.grad_bias, result);
        }
        if constexpr (requires { r.bias; }) set(r.bias, dtype);
      },
      typed);
  return problem::judge(typed).is_ok() ? std::optional(typed) : std::nullopt;
}

}  // namespace retrograd::test

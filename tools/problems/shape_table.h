// SPDX-License-Identifier: Apache-2.0
// Files of problems as lines of text: one problem a line with # comments, or a table (*.csv) with a row each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace retrograd::tools {

struct ShapeLine {
  int number = 0;    // in the file, from 1
  std::string name;  // the table's first column; "grouped.txt:4" in a file of lines
  std::string text;  // the problem
};
Result<std::vector<ShapeLine>> read_shapes(const std::string& path);

// The same from the content of a file. `label` stands for the file in names and messages.
Result<std::vector<ShapeLine>> parse_problem_lines(std::string_view content, const std::string& label);
// Columns of convolutions: name,ndim,N,Cin,Cout,groups,spatial_in,kernel,stride,pad,dilation,transposed;
// of pooling: name,ndim,N,C,spatial_in,kernel,stride,pad.
Result<std::vector<ShapeLine>> parse_shape_table(std::string_view content, const std::string& label);

}  // namespace retrograd::tools

// SPDX-License-Identifier: Apache-2.0
// Turns the rows of a table of shapes into the one-line text form.
#include "tools/problems/shape_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace retrograd::tools {
namespace {

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    parts.push_back(text.substr(0, end));
    if (end == text.size()) return parts;
    text.remove_prefix(end + 1);
  }
}

std::string_view without_line_end(std::string_view line) {
  return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
}

class Row {
 public:
  Row(const std::vector<std::string_view>& columns, const std::vector<std::string_view>& cells) {
    for (size_t i = 0; i < columns.size(); ++i) cells_[columns[i]] = cells[i];
  }
  std::string_view text(std::string_view column) const { return cells_.at(column); }
  // Of a cell that check_cell() has seen.
  int64_t number(std::string_view column) const {
    const std::string_view cell = text(column);
    int64_t value = 0;
    std::from_chars(cell.data(), cell.data() + cell.size(), value);
    return value;
  }

 private:
  std::map<std::string_view, std::string_view> cells_;
};

std::string conv_text(const Row& row) {
  const int64_t groups = std::max<int64_t>(row.number("groups"), 1);
  const bool transposed = row.text("transposed") == "1";
  const int64_t first = row.number(transposed ? "Cin" : "Cout"),
                second = row.number(transposed ? "Cout" : "Cin") / groups;
  return fmt::format("conv input={}x{}x{} weight={}x{}x{} stride={} padding={} dilation={} groups={}{}",
                     row.text("N"), row.text("Cin"), row.text("spatial_in"), first, second,
                     row.text("kernel"), row.text("stride"), row.text("pad"), row.text("dilation"),
                     row.text("groups"), transposed ? " transposed=1" : "");
}

std::string pool_text(const Row& row) {
  return fmt::format("avgpool input={}x{}x{} kernel={} stride={} padding={}", row.text("N"), row.text("C"),
                     row.text("spatial_in"), row.text("kernel"), row.text("stride"), row.text("pad"));
}

Status failure(const std::string& label, int number, const std::string& sentence) {
  return {Code::kInvalidArgument, fmt::format("{}:{}: {}", label, number, sentence)};
}

// What is wrong with a cell, or nothing.
std::string check_cell(std::string_view column, std::string_view cell) {
  if (column == "name") return {};
  if (column == "transposed") return cell == "0" || cell == "1" ? "" : "expected 0 or 1";
  constexpr std::string_view kLists[] = {"spatial_in", "kernel", "stride", "pad", "dilation"};
  const bool is_list = std::find(std::begin(kLists), std::end(kLists), column) != std::end(kLists);
  for (const std::string_view word : is_list ? split(cell, 'x') : std::vector{cell}) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error == std::errc::invalid_argument || end != word.data() + word.size())
      return is_list ? "expected whole numbers with x between" : "expected a whole number";
    if (error != std::errc()) return "which does not fit in 64 bits";
  }
  return {};
}

constexpr std::string_view kConvColumns =
    "name,ndim,N,Cin,Cout,groups,spatial_in,kernel,stride,pad,dilation,transposed";
constexpr std::string_view kPoolColumns = "name,ndim,N,C,spatial_in,kernel,stride,pad";

}  // namespace

Result<std::vector<ShapeLine>> parse_problem_lines(std::string_view content, const std::string& label) {
  std::vector<ShapeLine> lines;
  int number = 0;
  for (std::string_view line : split(content, '\n')) {
    ++number;
    line = without_line_end(line.substr(0, line.find('#')));
    const size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \t") - begin + 1);
    lines.push_back({number, fmt::format("{}:{}", label, number), std::string(line)});
  }
  return lines;
}

Result<std::vector<ShapeLine>> parse_shape_table(std::string_view content, const std::string& label) {
  const auto all = split(content, '\n');
  const std::string_view header = without_line_end(all[0]);
  const bool conv = header == kConvColumns;
  if (!conv && header != kPoolColumns)
    return failure(label, 1,
                   fmt::format("'{}' are not the columns of a table, expected\n  {}\nor\n  {}", header,
                               kConvColumns, kPoolColumns));
  const auto columns = split(header, ',');
  std::vector<ShapeLine> rows;
  for (size_t i = 1; i < all.size(); ++i) {
    const int number = static_cast<int>(i) + 1;
    const std::string_view line = without_line_end(all[i]);
    if (line.empty()) continue;
    const auto cells = split(line, ',');
    if (cells.size() != columns.size())
      return failure(label, number, fmt::format("{} cells, expected {}", cells.size(), columns.size()));
    for (size_t c = 0; c < cells.size(); ++c)
      if (const std::string wrong = check_cell(columns[c], cells[c]); !wrong.empty())
        return failure(label, number, fmt::format("{} is '{}', {}", columns[c], cells[c], wrong));
    const Row row(columns, cells);
    rows.push_back({number, std::string(cells[0]), conv ? conv_text(row) : pool_text(row)});
  }
  return rows;
}

Result<std::vector<ShapeLine>> read_shapes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  in.peek();
  if (in.eof()) return Status(Code::kInvalidArgument, fmt::format("--shapes: '{}' is empty", path));
  std::stringstream content;
  if (in) content << in.rdbuf();
  if (!in || content.fail())
    return Status(Code::kInvalidArgument, fmt::format("--shapes: '{}' cannot be read", path));
  const std::filesystem::path file(path);
  const std::string label = file.filename().string();
  return file.extension() == ".csv" ? parse_shape_table(content.str(), label)
                                    : parse_problem_lines(content.str(), label);
}

}  // namespace retrograd::tools

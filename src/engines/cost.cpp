// SPDX-License-Identifier: Apache-2.0
// The formula, the tables that are built in, and the file that replaces them.
#include "engines/cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

#include "base/checked.h"
#include "base/log.h"
#include "base/settings.h"
#include "engines/builtin_tuning.h"
#include "engines/registry.h"

namespace retrograd::engines {
namespace {

double number(int64_t value) { return static_cast<double>(value); }

double bytes_of(const problem::PassTensor& tensor, double elements) {
  return elements * number(static_cast<int64_t>(size_of(tensor.dtype)));
}

// Bytes of the tensors that a pass touches; of a bias, next to nothing.
std::array<double, 3> tensor_bytes(const problem::ConvPass& p) {
  double x = number(p.batch) * number(p.x_channels), y = number(p.batch) * number(p.y_channels);
  double w = number(p.y_channels) * number(p.x_channels_per_group());
  for (const problem::Window& axis : p.axes) {
    x *= number(axis.x);
    y *= number(axis.y);
    w *= number(axis.kernel);
  }
  return {bytes_of(p.x, x), bytes_of(p.y, y), bytes_of(p.w, w)};
}
std::array<double, 3> tensor_bytes(const problem::BiasPass& p) {
  return {bytes_of(p.grad_output, number(p.reduction_length()) * number(p.channels))};
}
std::array<double, 3> tensor_bytes(const problem::AvgPoolPass& p) {
  double x = number(p.batch) * number(p.channels), y = x;
  for (const problem::PoolWindow& axis : p.axes) {
    x *= number(axis.x);
    y *= number(axis.y);
  }
  return {bytes_of(p.x, x), bytes_of(p.y, y)};
}
template <class Pass>
double bytes_of(const Pass& p) {
  const auto bytes = tensor_bytes(p);
  return bytes[0] + bytes[1] + bytes[2];
}

Effort effort_of(const problem::ConvPass& p) {
  double products = number(p.batch) * number(p.y_channels) * number(p.x_channels_per_group());
  // A tap beyond the image meets padding alone.
  for (const problem::Window& axis : p.axes)
    products *= number(axis.y) * number(std::min(axis.kernel, ceil_div(axis.x, axis.dilation)));
  return {.operations = 2 * products, .bytes = bytes_of(p), .launches = 1};
}

Effort effort_of(const problem::BiasPass& p) {
  return {.operations = number(p.reduction_length()) * number(p.channels),
          .bytes = bytes_of(p),
          .launches = 1,
          .calls = number(p.channels)};
}

Effort effort_of(const problem::AvgPoolPass& p) {
  double taps = number(p.batch) * number(p.channels);
  for (const problem::PoolWindow& axis : p.axes)
    taps *= std::max(number(axis.x), number(axis.y) * number(axis.kernel));
  return {.operations = taps, .bytes = bytes_of(p), .launches = 1};
}

bool is_sixteen_bits(const problem::Pass& pass) { return size_of(result_of(pass).dtype) == 2; }

// A CPU's costs are those of two threads, however many there are: the order in which implementations add
// differs, and so would the bits if another number of threads made another one the cheapest.
constexpr double kThreads = 2;

// Operations a microsecond.
double peak_of(const Machine& machine, const problem::Pass& pass) {
  if (machine.kind == Machine::Kind::kCpu) return machine.cpu.gflops * kThreads * 1e3;
  return (is_sixteen_bits(pass) ? machine.gpu.f16_tflops : machine.gpu.fp32_tflops) * 1e6;
}
// Bytes a microsecond.
double bandwidth_of(const Machine& machine) {
  return (machine.kind == Machine::Kind::kCpu ? machine.cpu.copy_gbs * kThreads : machine.gpu.copy_gbs) * 1e3;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  line = line.substr(0, line.find('#'));
  constexpr std::string_view kSpace = " \t\r";
  while (true) {
    const size_t begin = line.find_first_not_of(kSpace);
    if (begin == std::string_view::npos) return words;
    const size_t end = std::min(line.find_first_of(kSpace, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    line.remove_prefix(end);
  }
}

const Tuning& builtin_tuning(const Machine& machine) {
  static const Tuning cpu = Tuning::parse(kBuiltinCpuTuning).value();
  static const Tuning cpu_bf16_pairs = Tuning::parse(kBuiltinCpuBf16PairsTuning).value();
  static const Tuning gpu = Tuning::parse(kBuiltinGpuTuning).value();
  if (machine.kind != Machine::Kind::kCpu) return gpu;
  return machine.cpu.bf16_pairs ? cpu_bf16_pairs : cpu;
}

bool is_implementation(std::string_view name) {
  for (const auto kind : {runtime::DeviceKind::kCpu, runtime::DeviceKind::kCuda})
    for (const Candidate* candidate : candidates(kind))
      if (candidate->name() == name) return true;
  return false;
}

// Lines of a table that nobody looks for: of another version, or misspelt.
void warn_of_unknown_names(const std::string& path, std::string_view table) {
  for (int line_number = 1; !table.empty(); ++line_number) {
    const size_t end = std::min(table.find('\n'), table.size());
    const std::vector<std::string_view> words = words_of(table.substr(0, end));
    table.remove_prefix(std::min(end + 1, table.size()));
    if (words.empty()) continue;
    const std::string_view name = words[0].substr(0, words[0].find('/'));
    if (!is_implementation(name))
      log::warn_once(
          fmt::format("RETROGRAD_TUNING: {}: line {}: no implementation is called '{}'; the line "
                      "says nothing",
                      path, line_number, name));
  }
}

// What RETROGRAD_TUNING names, or nothing.
std::optional<Tuning> read_tuning(const std::string& path) {
  if (path.empty()) return std::nullopt;
  std::ifstream file(path);
  file.peek();
  std::stringstream text;
  if (!file || !(text << file.rdbuf())) {
    log::warn_once(fmt::format("RETROGRAD_TUNING: {} {}; the built-in table is used", path,
                               file.eof() ? "is empty" : "cannot be read"));
    return std::nullopt;
  }
  auto tuning = Tuning::parse(text.str());
  if (tuning.is_ok()) {
    warn_of_unknown_names(path, text.str());
    return std::move(tuning).value();
  }
  log::warn_once(
      fmt::format("RETROGRAD_TUNING: {}: {}; the built-in table is used", path, tuning.status().message()));
  return std::nullopt;
}

}  // namespace

namespace {

constexpr std::string_view kPasses[] = {"forward",   "grad_input", "grad_weight",
                                        "grad_bias", "avgpool",    "avgpool_forward"};
// Made once: a plan asks for every implementation. In the order of passes, types, layouts.
const std::vector<std::string>& tuning_cases() {
  static const auto& cases = *[] {
    auto* all = new std::vector<std::string>;
    for (const std::string_view name : kPasses)
      for (const char* type : {"f32", "f16"})
        for (const char* layout : {"nchw", "nhwc"})
          all->push_back(fmt::format("{}/{}/{}", name, type, layout));
    return all;
  }();
  return cases;
}

bool is_channels_last(const problem::ConvPass& p) { return p.x.strides[1] == 1 && p.x_channels > 1; }
bool is_channels_last(const problem::BiasPass& p) { return p.grad_output.strides[1] == 1 && p.channels > 1; }
bool is_channels_last(const problem::AvgPoolPass& p) { return p.x.strides[1] == 1 && p.channels > 1; }

}  // namespace

std::string_view tuning_case(const problem::Pass& pass) {
  const auto row = static_cast<size_t>(std::find(std::begin(kPasses), std::end(kPasses), name_of(pass)) -
                                       std::begin(kPasses));
  const bool last = std::visit([](const auto& p) { return is_channels_last(p); }, pass);
  return tuning_cases()[row * 4 + (size_of(result_of(pass).dtype) == 4 ? 0 : 2) + (last ? 1 : 0)];
}

Effort effort_of(const problem::Pass& pass) {
  return std::visit([](const auto& p) { return effort_of(p); }, pass);
}

double largest_operand(const problem::Pass& pass) {
  return std::visit([](const auto& p) { return std::ranges::max(tensor_bytes(p)); }, pass);
}

Effort Candidate::effort(const problem::Pass& pass, const Machine&) const { return effort_of(pass); }

Result<Tuning> Tuning::parse(std::string_view text) {
  Tuning tuning;
  int line_number = 0;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++line_number;
    if (words.empty()) continue;
    const auto refused = [&](std::string reason) {
      return Status(Code::kInvalidArgument, "line {}: {}", line_number, reason);
    };
    if (words.size() != 5)
      return refused(fmt::format("{} words, expected 5: name arithmetic memory start call", words.size()));
    double values[4];
    for (size_t i = 0; i < 4; ++i) {
      const std::string_view word = words[i + 1];
      const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), values[i]);
      const bool whole = error == std::errc() && stop == word.data() + word.size();
      // A call may cost nothing; with no number below 1e-9 no cost is infinite.
      if (!whole || !(values[i] >= (i == 3 ? 0 : 1e-9) && values[i] <= 1e6))
        return refused(fmt::format("'{}' is not a number from {} to 1000000", word, i == 3 ? "0" : "1e-9"));
    }
    const size_t slash = words[0].find('/');
    const auto& cases = tuning_cases();
    if (slash != std::string_view::npos &&
        std::find(cases.begin(), cases.end(), words[0].substr(slash + 1)) == cases.end())
      return refused(fmt::format("'{}' is not a case of a pass, such as grad_weight/f16/nhwc",
                                 words[0].substr(slash + 1)));
    tuning.set(words[0], {values[0], values[1], values[2], values[3]});
  }
  return tuning;
}

std::string Tuning::to_text() const {
  std::string text;
  const auto add = [&](const std::string& name, const std::optional<Efficiency>& e) {
    if (e)
      text += fmt::format("{:<44} {:>7.4g} {:>7.4g} {:>7.4g} {:>7.4g}\n", name, e->arithmetic, e->memory,
                          e->start, e->call);
  };
  for (const auto& [all, cases] : implementations_) {
    add(all.name, all.efficiency);
    for (const Line& one : cases) add(all.name + "/" + one.name, one.efficiency);
  }
  return text;
}

namespace {

// The element of that name; a new one, where there is none.
template <class Element, class Name>
Element& element_of(std::vector<Element>& elements, std::string_view name, const Name& name_of) {
  for (Element& element : elements)
    if (name_of(element) == name) return element;
  name_of(elements.emplace_back()) = name;
  return elements.back();
}

}  // namespace

void Tuning::set(std::string_view name, Efficiency efficiency) {
  const size_t slash = std::min(name.find('/'), name.size());
  Lines& lines = element_of(implementations_, name.substr(0, slash),
                            [](Lines& l) -> std::string& { return l.all.name; });
  Line& line = slash == name.size() ? lines.all
                                    : element_of(lines.cases, name.substr(slash + 1),
                                                 [](Line& l) -> std::string& { return l.name; });
  line.efficiency = efficiency;
}

bool Tuning::has(std::string_view name) const {
  const size_t slash = std::min(name.find('/'), name.size());
  return std::any_of(implementations_.begin(), implementations_.end(), [&](const Lines& lines) {
    if (lines.all.name != name.substr(0, slash)) return false;
    return slash == name.size() ? lines.all.efficiency.has_value()
                                : std::any_of(lines.cases.begin(), lines.cases.end(), [&](const Line& one) {
                                    return one.name == name.substr(slash + 1);
                                  });
  });
}

Tuning Tuning::without_cases() const {
  Tuning table = *this;
  for (Lines& lines : table.implementations_) lines.cases.clear();
  return table;
}

Efficiency Tuning::of(std::string_view name) const {
  const size_t slash = std::min(name.find('/'), name.size());
  return of(name.substr(0, slash), name.substr(std::min(slash + 1, name.size())));
}

Efficiency Tuning::of(std::string_view implementation, std::string_view pass_case) const {
  for (const auto& [all, cases] : implementations_) {
    if (all.name != implementation) continue;
    for (const Line& one : cases)
      if (one.name == pass_case) return *one.efficiency;
    return all.efficiency.value_or(Efficiency{});
  }
  return {};
}

namespace {

// Of the file, or nothing.
const std::optional<Tuning>& given_tuning() {
  // A file is one machine's, and would choose as no other machine does.
  static const std::optional<Tuning> from_file =
      settings().bits == Bits::kPortable ? std::nullopt : read_tuning(settings().tuning);
  return from_file;
}

}  // namespace

bool uses_given_tuning() { return given_tuning().has_value(); }

const Tuning& tuning_for(const Machine& machine) {
  const std::optional<Tuning>& given = given_tuning();
  return given ? *given : builtin_tuning(machine);
}

double own_cost(const Candidate& candidate, const problem::Pass& pass, const Machine& machine,
                const Efficiency& efficiency) {
  const Effort effort = candidate.effort(pass, machine);
  const double threads = machine.kind == Machine::Kind::kCpu ? kThreads : 1;
  return effort.launches * efficiency.start + effort.calls / threads * efficiency.call / 1000 +
         std::max(effort.operations / (peak_of(machine, pass) * efficiency.arithmetic),
                  effort.bytes / (bandwidth_of(machine) * efficiency.memory));
}

double cost(const Candidate& candidate, const problem::Pass& pass, const Machine& machine,
            const Tuning& tuning) {
  const auto rest = candidate.rest(pass, machine);
  return own_cost(candidate, pass, machine, tuning.of(candidate.name(), tuning_case(pass))) +
         (rest ? cost(*rest->candidate, rest->pass, machine, tuning) : 0);
}

double cost(const Candidate& candidate, const problem::Pass& pass, const Machine& machine) {
  return cost(candidate, pass, machine, tuning_for(machine));
}

Cheapest cheapest(std::span<const Candidate* const> candidates, const problem::Pass& pass,
                  const Machine& machine, std::initializer_list<const Candidate*> left_out) {
  Cheapest best;
  for (const Candidate* candidate : candidates)
    if (!candidate->reduces_precision() &&
        std::find(left_out.begin(), left_out.end(), candidate) == left_out.end() &&
        candidate->supports(pass, machine).accepted())
      if (const double one = cost(*candidate, pass, machine);
          best.candidate == nullptr || one < best.microseconds)
        best = {candidate, one};
  return best;
}

}  // namespace retrograd::engines

// SPDX-License-Identifier: Apache-2.0
// Numbers and special values, drawn and written.
#include "support/generator/operand_data.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace retrograd::test {
namespace {

using problem::Operand;
using Numbers = DataSketch::Numbers;
using PlacedAgainst = Placement::Against;

unsigned bit(Special special) { return 1U << static_cast<unsigned>(special); }

// Smallest positive number, how many of them are denormal, and the largest number.
struct Range {
  double smallest;
  int64_t denormals;
  double largest;
};
Range range_of(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return {0x1p-149, (1 << 23) - 1, std::numeric_limits<float>::max()};
    case DType::kF16:
      return {0x1p-24, 1023, 65504};
    case DType::kBF16:
      return {0x1p-133, 127, 0x1.FEp127};
    case DType::kHiF8:
      return {0x1p-22, 7, 32768};
    case DType::kE4M3:
      return {0x1p-9, 7, 448};
  }
  return {};
}

Special special_of(unsigned kinds, Draw& draw) {
  const int64_t which = draw.number(1, std::popcount(kinds));
  int64_t seen = 0;
  for (int i = 0; i < kSpecialCount; ++i)
    if ((kinds >> static_cast<unsigned>(i) & 1U) != 0 && ++seen == which) return static_cast<Special>(i);
  return Special::kNan;
}

void fill(HostTensor& tensor, Numbers numbers, Draw& draw) {
  const DType dtype = tensor.view().dtype;
  std::byte* const storage = tensor.storage().data();
  double spare = 0;
  bool has_spare = false;
  tensor.for_each_byte([&](size_t byte) {
    double value = 0;
    if (numbers == Numbers::kIntegers) {
      value = static_cast<double>(draw.number(-2, 2));
    } else if (has_spare) {
      value = spare;
      has_spare = false;
    } else {  // Box and Muller's two normal numbers
      const double radius = std::sqrt(-2 * std::log(1 - draw.fraction()));
      const double angle = 6.283185307179586 * draw.fraction();
      value = radius * std::cos(angle);
      spare = radius * std::sin(angle);
      has_spare = true;
    }
    store_from_f32(dtype, storage + byte, static_cast<float>(value));
  });
}

void scatter(HostTensor& tensor, const DataSketch::Specials& specials, Draw& draw) {
  if (specials.amount == Amount::kNone || specials.kinds == 0 || tensor.count() == 0) return;
  const DType dtype = tensor.view().dtype;
  std::vector<size_t> bytes;
  bytes.reserve(static_cast<size_t>(tensor.count()));
  tensor.for_each_byte([&](size_t byte) { bytes.push_back(byte); });
  const auto put = [&](size_t byte) {
    const double value = special_value(special_of(specials.kinds, draw), dtype, draw);
    store_from_f32(dtype, tensor.storage().data() + byte, static_cast<float>(value));
  };
  const int64_t count = tensor.count();
  const int64_t puts = specials.amount == Amount::kOne   ? 1
                       : specials.amount == Amount::kFew ? std::min(count, std::max<int64_t>(2, count / 8))
                                                         : 0;
  for (int64_t i = 0; i < puts; ++i) put(bytes[static_cast<size_t>(draw.number(0, count - 1))]);
  if (specials.amount < Amount::kMany) return;
  for (size_t byte : bytes)
    if (specials.amount == Amount::kAll || draw.chance(50)) put(byte);
}

Placement draw_placement(Draw& draw) {
  Placement placement;
  placement.against =
      draw.pick({PlacedAgainst::kEnd, PlacedAgainst::kEnd, PlacedAgainst::kStart, PlacedAgainst::kNeither});
  if (placement.against == PlacedAgainst::kNeither) placement.offset = draw.number(0, 31);
  if (draw.chance(15)) placement.odd_bytes = static_cast<int>(draw.number(1, 3));
  return placement;
}

}  // namespace

const char* name_of(Special special) {
  constexpr const char* kNames[] = {"nan", "inf", "-inf", "-0", "denormal", "largest"};
  return kNames[static_cast<size_t>(special)];
}
const char* name_of(Amount amount) {
  constexpr const char* kNames[] = {"no", "one", "a few", "many", "all"};
  return kNames[static_cast<size_t>(amount)];
}

bool DataSketch::has_specials() const {
  return std::any_of(specials.begin(), specials.end(),
                     [](const Specials& s) { return s.amount != Amount::kNone; });
}
bool DataSketch::has(Special special) const {
  return std::any_of(specials.begin(), specials.end(), [&](const Specials& s) {
    return s.amount != Amount::kNone && (s.kinds & bit(special)) != 0;
  });
}

double special_value(Special special, DType dtype, Draw& draw) {
  const Range range = range_of(dtype);
  const double sign = draw.chance(50) ? 1 : -1;
  switch (special) {
    case Special::kNan:
      return std::numeric_limits<double>::quiet_NaN();
    case Special::kInf:
      return std::numeric_limits<double>::infinity();
    case Special::kMinusInf:
      return -std::numeric_limits<double>::infinity();
    case Special::kMinusZero:
      return -0.0;
    case Special::kDenormal:
      // HIFLOAT8's are powers of two.
      if (dtype == DType::kHiF8)
        return sign * std::ldexp(range.smallest, static_cast<int>(draw.number(0, 6)));
      return sign * range.smallest * static_cast<double>(draw.log_number(1, range.denormals));
    case Special::kLargest:
      return sign * range.largest;
  }
  return 0;
}

DataSketch draw_data(Draw& draw) {
  DataSketch data;
  data.seed = draw.bits();
  data.numbers = draw.chance(60) ? Numbers::kIntegers : Numbers::kNormal;
  // Operands of forward problems have a draw of their own: seeds go on drawing what they drew without them.
  Draw forward(data.seed);
  for (size_t i = 0; i < data.placements.size(); ++i)
    data.placements[i] = draw_placement(i <= static_cast<size_t>(Operand::kGradBias) ? draw : forward);
  if (!draw.chance(40)) return data;
  // Mostly one operand and one kind: where several meet, nearly everything is NaN and little is seen.
  const int64_t first = draw.number(0, 2);
  for (int64_t i = 0; i < 3; ++i) {
    if (i != first && !draw.chance(20)) continue;
    DataSketch::Specials& specials = data.specials[static_cast<size_t>(i)];
    specials.amount = draw.pick(
        {Amount::kOne, Amount::kOne, Amount::kOne, Amount::kFew, Amount::kFew, Amount::kMany, Amount::kAll});
    specials.kinds = 1U << static_cast<unsigned>(draw.number(0, kSpecialCount - 1));
    if (draw.chance(20)) specials.kinds |= static_cast<unsigned>(draw.number(1, (1 << kSpecialCount) - 1));
  }
  return data;
}

void fill(Operands& operands, const DataSketch& data) {
  Draw draw(data.seed);
  for (size_t i = 0; i < data.specials.size(); ++i) {
    const auto own = static_cast<Operand>(i);
    auto& tensor = operands[own == Operand::kGradOutput && operands[Operand::kOutput] ? Operand::kBias : own];
    if (!tensor) continue;
    fill(*tensor, data.numbers, draw);
    scatter(*tensor, data.specials[i], draw);
  }
}

std::string to_string(const DataSketch& data) {
  std::string text = data.numbers == Numbers::kIntegers ? "integers" : "normal numbers";
  for (size_t i = 0; i < data.specials.size(); ++i) {
    const auto& [amount, kinds] = data.specials[i];
    if (amount == Amount::kNone) continue;
    text += fmt::format("; {}: {}", problem::name_of(static_cast<Operand>(i)), name_of(amount));
    for (int k = 0; k < kSpecialCount; ++k)
      if ((kinds >> static_cast<unsigned>(k) & 1U) != 0)
        text += fmt::format(" {}", name_of(static_cast<Special>(k)));
  }
  for (size_t i = 0; i < data.placements.size(); ++i)
    if (const int odd = data.placements[i].odd_bytes; odd > 0)
      text += fmt::format("; {} {} bytes off its alignment", problem::name_of(static_cast<Operand>(i)), odd);
  return text;
}

std::vector<DataSketch> simpler_than(const DataSketch& data) {
  std::vector<DataSketch> all;
  const auto add = [&](auto change) { change(all.emplace_back(data)); };
  for (size_t i = 0; i < data.specials.size(); ++i) {
    const auto& [amount, kinds] = data.specials[i];
    if (amount == Amount::kNone) continue;
    add([i](DataSketch& d) { d.specials[i] = {}; });
    if (amount > Amount::kOne) add([i](DataSketch& d) { d.specials[i].amount = Amount::kOne; });
    for (unsigned k = 0; k < kSpecialCount && std::popcount(kinds) > 1; ++k)
      if ((kinds >> k & 1U) != 0) add([=](DataSketch& d) { d.specials[i].kinds = 1U << k; });
  }
  for (size_t i = 0; i < data.placements.size(); ++i) {
    if (data.placements[i].odd_bytes > 0) add([i](DataSketch& d) { d.placements[i].odd_bytes = 0; });
    if (data.placements[i].offset > 0) add([i](DataSketch& d) { d.placements[i].offset = 0; });
  }
  if (data.numbers == Numbers::kNormal) add([](DataSketch& d) { d.numbers = Numbers::kIntegers; });
  return all;
}

}  // namespace retrograd::test

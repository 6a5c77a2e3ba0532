// SPDX-License-Identifier: Apache-2.0
// Thompson's construction and search: all places that the characters so far lead to, step by step.
#include "tools/problems/row_pattern.h"

#include <fmt/format.h>

#include <cctype>
#include <optional>

namespace retrograd::tools {

// Reads a pattern from left to right. What is open, groups inside groups, is a list and no recursion.
class RowPatternParser {
 public:
  explicit RowPatternParser(std::string_view text) : text_(text) {}

  Result<RowPattern> parse() {
    if (text_.size() > RowPattern::kMostCharacters)
      return Status(Code::kInvalidArgument, fmt::format("it has {} characters, at most {} are read",
                                                        text_.size(), RowPattern::kMostCharacters));
    open_.emplace_back();
    while (at_ < text_.size()) RG_CHECK(read_one());
    if (open_.size() > 1) return wrong("a ( is not closed");
    const Part whole = close();
    out_.first_ = whole.first;
    out_.places_[whole.last] = {Kind::kFound};
    return std::move(out_);
  }

 private:
  using Kind = RowPattern::Kind;
  using Set = RowPattern::Set;
  // From `first` to `last`, which is a pass that leads nowhere yet.
  struct Part {
    uint32_t first, last;
  };
  // What has been read of a group: alternatives that are complete, and the one being read.
  struct Group {
    std::optional<Part> alternatives, sequence, item;
    bool repeated = false;  // `item`
  };

  Status wrong(std::string_view why) const {
    return {Code::kInvalidArgument, fmt::format("character {}: {}", at_, why)};
  }
  uint32_t place(RowPattern::Place place) {
    out_.places_.push_back(place);
    return static_cast<uint32_t>(out_.places_.size() - 1);
  }
  Part single(Kind kind, uint32_t set = 0) {
    const uint32_t last = place({});
    return {place({kind, last, 0, set}), last};
  }
  Part chars(const Set& set) {
    out_.sets_.push_back(set);
    return single(Kind::kSet, static_cast<uint32_t>(out_.sets_.size() - 1));
  }
  Part either(Part a, Part b) {
    const uint32_t last = place({});
    out_.places_[a.last].next = out_.places_[b.last].next = last;
    return {place({Kind::kFork, a.first, b.first}), last};
  }
  // Once or not at all; any number of times; at least once.
  Part repeat(Part part, char how) {
    const uint32_t last = place({}), fork = place({Kind::kFork, part.first, last});
    out_.places_[part.last].next = how == '?' ? last : fork;
    return {how == '+' ? part.first : fork, last};
  }

  void add_item(Part part) {
    end_item();
    open_.back().item = part;
    open_.back().repeated = false;
  }
  void end_item() {
    Group& group = open_.back();
    if (!group.item) return;
    if (group.sequence) {
      out_.places_[group.sequence->last].next = group.item->first;
      group.sequence->last = group.item->last;
    } else {
      group.sequence = group.item;
    }
    group.item.reset();
  }
  void end_alternative() {
    end_item();
    Group& group = open_.back();
    const Part part = group.sequence ? *group.sequence : single(Kind::kPass);
    group.alternatives = group.alternatives ? either(*group.alternatives, part) : part;
    group.sequence.reset();
  }
  Part close() {
    end_alternative();
    const Part part = *open_.back().alternatives;
    open_.pop_back();
    return part;
  }

  // The character behind a backslash, which has been read.
  Result<unsigned char> escaped() {
    if (at_ == text_.size()) return wrong("nothing behind \\");
    const auto c = static_cast<unsigned char>(text_[at_++]);
    if (std::isalnum(c) != 0) return wrong(fmt::format("\\{} has no meaning here", text_[at_ - 1]));
    return c;
  }
  Result<unsigned char> set_member() {
    const auto c = static_cast<unsigned char>(text_[at_++]);
    if (c != '\\') return c;
    return escaped();
  }
  // Behind [.
  Status read_set() {
    Set set;
    const bool inverted = at_ < text_.size() && text_[at_] == '^';
    if (inverted) ++at_;
    for (;;) {
      if (at_ == text_.size()) return wrong("a [ is not closed");
      if (text_[at_] == ']') break;
      RG_TRY(const unsigned low, set_member());
      unsigned high = low;
      if (at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']') {
        ++at_;
        RG_TRY(high, set_member());
      }
      if (high < low) return wrong("a range that ends before it begins");
      for (unsigned c = low; c <= high; ++c) set.set(c);
    }
    ++at_;
    add_item(chars(inverted ? ~set : set));
    return Status::ok();
  }
  Status read_one() {
    const char c = text_[at_++];
    switch (c) {
      case '(':
        end_item();
        open_.emplace_back();
        return Status::ok();
      case ')':
        if (open_.size() == 1) return wrong("a ) that closes nothing");
        add_item(close());
        return Status::ok();
      case '|':
        end_alternative();
        return Status::ok();
      case '*':
      case '+':
      case '?':
        if (!open_.back().item) return wrong(fmt::format("nothing that {} could repeat", c));
        // Elsewhere a+? is another kind of a+.
        if (open_.back().repeated) return wrong(fmt::format("{} behind a repetition, which needs ( )", c));
        open_.back().item = repeat(*open_.back().item, c);
        open_.back().repeated = true;
        return Status::ok();
      case '[':
        return read_set();
      case '{':
      case '}':
        return wrong(fmt::format("{} is not known here; \\{} is the character", c, c));
      case '^':
      case '$':
        add_item(single(c == '^' ? Kind::kBegin : Kind::kEnd));
        return Status::ok();
      case '.':
        add_item(chars(Set().set()));
        return Status::ok();
      default:
        break;
    }
    auto literal = static_cast<unsigned char>(c);
    if (c == '\\') {
      RG_TRY(literal, escaped());
    }
    add_item(chars(Set().set(literal)));
    return Status::ok();
  }

  std::string_view text_;
  size_t at_ = 0;
  std::vector<Group> open_;
  RowPattern out_;
};

// The places that can be next; each once, however many ways lead there.
class RowPattern::Search {
 public:
  explicit Search(const RowPattern& pattern) : pattern_(pattern), seen_(pattern.places_.size(), 0) {}

  // True when the end of the pattern is among them.
  bool begin_step(bool at_begin, bool at_end) {
    at_begin_ = at_begin;
    at_end_ = at_end;
    ++step_;
    sets_.clear();
    return reach(pattern_.first_);
  }
  bool reach(uint32_t start) {
    waiting_.assign(1, start);
    while (!waiting_.empty()) {
      const uint32_t number = waiting_.back();
      waiting_.pop_back();
      if (seen_[number] == step_) continue;
      seen_[number] = step_;
      const Place& place = pattern_.places_[number];
      if (place.kind == Kind::kFound) return true;
      if (place.kind == Kind::kSet) {
        sets_.push_back(number);
        continue;
      }
      if ((place.kind == Kind::kBegin && !at_begin_) || (place.kind == Kind::kEnd && !at_end_)) continue;
      waiting_.push_back(place.next);
      if (place.kind == Kind::kFork) waiting_.push_back(place.other);
    }
    return false;
  }
  std::vector<uint32_t>& sets() { return sets_; }

 private:
  const RowPattern& pattern_;
  std::vector<size_t> seen_;  // in which step
  std::vector<uint32_t> waiting_, sets_;
  size_t step_ = 0;
  bool at_begin_ = false, at_end_ = false;
};

Result<RowPattern> RowPattern::parse(std::string_view text) { return RowPatternParser(text).parse(); }

bool RowPattern::found_in(std::string_view name) const {
  Search search(*this);
  std::vector<uint32_t> before;  // the sets of the step before
  for (size_t i = 0;; ++i) {
    std::swap(before, search.sets());
    if (search.begin_step(i == 0, i == name.size())) return true;
    for (const uint32_t number : before) {
      const Place& place = places_[number];
      if (sets_[place.set].test(static_cast<unsigned char>(name[i - 1])) && search.reach(place.next))
        return true;
    }
    if (i == name.size()) return false;
  }
}

}  // namespace retrograd::tools

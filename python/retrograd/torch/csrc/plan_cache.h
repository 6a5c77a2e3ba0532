// SPDX-License-Identifier: Apache-2.0
// Plans by what they were made for. A plan takes 20 us or more to make and 50 ns to find.
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "counters.h"
#include "retrograd/retrograd.h"

namespace retrograd_torch {

constexpr int kMaxRank = 5;

// A problem as a row of numbers. What does not fit is left to PyTorch.
class Key {
 public:
  void push(int64_t word) {
    if (count_ < words_.size())
      words_[count_++] = word;
    else
      fits_ = false;
  }
  template <class List>
  void push_list(const List& list) {
    push(static_cast<int64_t>(list.size()));
    for (const auto value : list) push(static_cast<int64_t>(value));
  }
  bool fits() const { return fits_; }
  bool operator==(const Key& other) const;
  size_t hash() const;

 private:
  std::array<int64_t, 80> words_;
  size_t count_ = 0;
  bool fits_ = true;
};

// Where one result lies; rank 0: not wanted.
struct ResultLayout {
  int rank = 0;
  std::array<int64_t, kMaxRank> sizes{}, strides{};
};

// What is known of a problem on a device: a plan and the results it fills, or why there is none.
struct Entry {
  Entry() = default;
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;
  ~Entry();

  retrogradPlan_t plan = nullptr;
  std::string refusal;  // when plan is null
  size_t workspace_size = 0;
  ResultLayout grad_input, grad_weight, grad_bias;
  bool depthwise = false;
  bool stock_faster = false;
};

// The entries used last, at most `capacity`. Any number of threads.
class PlanCache {
 public:
  explicit PlanCache(size_t capacity) : capacity_(capacity) {}
  std::shared_ptr<const Entry> find(const Key& key);  // null: not there
  void insert(const Key& key, std::shared_ptr<const Entry> entry);
  void clear();
  size_t size();

 private:
  struct Hash {
    size_t operator()(const Key& key) const { return key.hash(); }
  };
  using Row = std::pair<Key, std::shared_ptr<const Entry>>;

  const size_t capacity_;
  std::mutex mutex_;
  std::list<Row> rows_;  // the one used last in front
  std::unordered_map<Key, std::list<Row>::iterator, Hash> index_;
};

}  // namespace retrograd_torch

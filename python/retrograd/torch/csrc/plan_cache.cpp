// SPDX-License-Identifier: Apache-2.0
#include "plan_cache.h"

#include <algorithm>

namespace retrograd_torch {

bool Key::operator==(const Key& other) const {
  return count_ == other.count_ &&
         std::equal(words_.begin(), words_.begin() + static_cast<int64_t>(count_), other.words_.begin());
}

size_t Key::hash() const {
  uint64_t hash = 0x9e3779b97f4a7c15u ^ count_;
  for (size_t i = 0; i < count_; ++i) {
    hash = (hash ^ static_cast<uint64_t>(words_[i])) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  return hash;
}

Entry::~Entry() {
  if (plan != nullptr) retrogradDestroyPlan(plan);
}

std::shared_ptr<const Entry> PlanCache::find(const Key& key) {
  const std::lock_guard lock(mutex_);
  const auto place = index_.find(key);
  if (place == index_.end()) return nullptr;
  rows_.splice(rows_.begin(), rows_, place->second);
  return place->second->second;
}

void PlanCache::insert(const Key& key, std::shared_ptr<const Entry> entry) {
  std::list<Row> gone;  // destroyed after the mutex is free
  const std::lock_guard lock(mutex_);
  if (index_.count(key) != 0) return;  // another thread made it meanwhile
  rows_.emplace_front(key, std::move(entry));
  index_.emplace(key, rows_.begin());
  while (rows_.size() > capacity_) {
    index_.erase(rows_.back().first);
    gone.splice(gone.begin(), rows_, std::prev(rows_.end()));
  }
}

void PlanCache::clear() {
  std::list<Row> gone;
  const std::lock_guard lock(mutex_);
  index_.clear();
  gone.swap(rows_);
}

size_t PlanCache::size() {
  const std::lock_guard lock(mutex_);
  return rows_.size();
}

}  // namespace retrograd_torch

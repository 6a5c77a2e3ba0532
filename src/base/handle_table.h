// SPDX-License-Identifier: Apache-2.0
// HandleTable<T>: which handles of one kind are alive. A caller's handle is looked up before it is followed.
#pragma once

#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace retrograd {

// Handles that are no addresses at all: counted up, never reused, in a range no allocator hands out. A stale
// one can therefore never be mistaken for a newer object, which an address could be.
void* mint_handle();
// Whether `handle` lies in that range, alive or not.
bool is_minted_handle(const void* handle);

template <class T>
class HandleTable {
 public:
  // The object behind a fresh minted handle.
  void* insert(std::shared_ptr<T> object) {
    void* key = mint_handle();
    insert_at(key, std::move(object));
    return key;
  }

  // For handles whose first bytes clients read: the key is the address of memory that `object` owns.
  void insert_at(const void* key, std::shared_ptr<T> object) {
    std::list<std::shared_ptr<T>> node;
    node.push_back(std::move(object));
    std::lock_guard lock(mutex_);
    if (live_.emplace(key, node.begin()).second) objects_.splice(objects_.end(), node);
  }

  // Null when the handle is dead, foreign or of another kind. The returned reference keeps the object alive
  // even if another thread destroys the handle meanwhile.
  std::shared_ptr<T> find(const void* key) const {
    std::lock_guard lock(mutex_);
    const auto it = live_.find(key);
    return it == live_.end() ? nullptr : *it->second;
  }

  // Takes the handle out of the table; null when it was not in it.
  std::shared_ptr<T> remove(const void* key) {
    std::lock_guard lock(mutex_);
    const auto it = live_.find(key);
    if (it == live_.end()) return nullptr;
    std::shared_ptr<T> object = std::move(*it->second);
    objects_.erase(it->second);
    live_.erase(it);
    return object;
  }

  // Takes out every handle whose object satisfies `condition`. Needs no memory, so that what is being ended
  // ends even when there is none.
  template <class Condition>
  std::list<std::shared_ptr<T>> remove_if(Condition condition) {
    std::list<std::shared_ptr<T>> removed;
    std::lock_guard lock(mutex_);
    for (auto it = live_.begin(); it != live_.end();) {
      if (condition(**it->second)) {
        removed.splice(removed.end(), objects_, it->second);
        it = live_.erase(it);
      } else {
        ++it;
      }
    }
    return removed;
  }

  size_t size() const {
    std::lock_guard lock(mutex_);
    return live_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::list<std::shared_ptr<T>> objects_;  // a list: nodes move to another one without memory
  std::unordered_map<const void*, typename std::list<std::shared_ptr<T>>::iterator> live_;
};

}  // namespace retrograd

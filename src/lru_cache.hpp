// A bounded cache: least recently used out first, each key created once however many threads ask.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace fastgemm {

struct LruStats {
  std::size_t size = 0, capacity = 0;
  std::int64_t hits = 0, misses = 0, evictions = 0;
};

template <typename Key, typename Value, typename Hash = std::hash<Key>>
class LruCache {
 public:
  using Pointer = std::shared_ptr<Value>;

  explicit LruCache(std::size_t capacity) : capacity_(capacity ? capacity : 1) {}
  LruCache(const LruCache&) = delete;
  LruCache& operator=(const LruCache&) = delete;

  // The value of `key`, created by `factory()` (returns a Pointer) when it is not there. Other
  // threads that ask for the same key meanwhile wait for it; other keys proceed. What the factory
  // throws reaches all who waited and is not cached.
  template <typename Factory>
  Pointer get_or_create(const Key& key, Factory&& factory) {
    std::shared_ptr<Creation> creation;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (Pointer found = find(key)) return found;
      auto& slot = creations_[key];
      if (slot) {
        ++hits_;
        creation = slot;
        creation->done.wait(lock, [&] { return creation->finished; });
        if (creation->error) std::rethrow_exception(creation->error);
        return creation->value;
      }
      ++misses_;
      slot = creation = std::make_shared<Creation>();
    }
    try {
      creation->value = factory();
    } catch (...) {
      creation->error = std::current_exception();
    }
    finish(key, *creation);
    if (creation->error) std::rethrow_exception(creation->error);
    return creation->value;
  }

  // The value of `key`, null where it is not there (yet). Never waits for a factory.
  Pointer get(const Key& key) {
    std::lock_guard<std::mutex> lock(mutex_);
    return find(key);
  }

  // Drops all values; those still in use elsewhere live on there.
  void clear() {
    Entries dropped;
    std::lock_guard<std::mutex> lock(mutex_);
    index_.clear();
    dropped.swap(entries_);
  }

  LruStats stats() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return {entries_.size(), capacity_, hits_, misses_, evictions_};
  }

 private:
  using Entries = std::list<std::pair<Key, Pointer>>;  // most recently used first

  struct Creation {
    std::condition_variable done;
    bool finished = false;
    Pointer value;
    std::exception_ptr error;
  };

  Pointer find(const Key& key) {
    const auto it = index_.find(key);
    if (it == index_.end()) return nullptr;
    ++hits_;
    entries_.splice(entries_.begin(), entries_, it->second);
    return it->second->second;
  }

  void finish(const Key& key, Creation& creation) {
    std::vector<Pointer> evicted;  // destroyed after the lock: destructors may take long
    {
      std::lock_guard<std::mutex> lock(mutex_);
      creations_.erase(key);
      creation.finished = true;
      if (!creation.error) {
        entries_.emplace_front(key, creation.value);
        index_[key] = entries_.begin();
      }
      while (entries_.size() > capacity_) {
        evicted.push_back(std::move(entries_.back().second));
        index_.erase(entries_.back().first);
        entries_.pop_back();
        ++evictions_;
      }
    }
    creation.done.notify_all();
  }

  mutable std::mutex mutex_;
  const std::size_t capacity_;
  Entries entries_;
  std::unordered_map<Key, typename Entries::iterator, Hash> index_;
  std::unordered_map<Key, std::shared_ptr<Creation>, Hash> creations_;
  std::int64_t hits_ = 0, misses_ = 0, evictions_ = 0;
};

}  // namespace fastgemm

// LruCache: once-per-key creation, eviction order, errors, many threads.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lru_cache.hpp"

namespace fastgemm {
namespace {

using Cache = LruCache<int, int>;

std::shared_ptr<int> value(int v) { return std::make_shared<int>(v); }

TEST(LruCache, ThirtyTwoThreadsCreateEachKeyOnce) {
  Cache cache(64);
  std::atomic<int> created{0}, wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 32; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const int key = (i + t) % 8;
        const auto got = cache.get_or_create(key, [&] {
          ++created;
          std::this_thread::sleep_for(std::chrono::milliseconds(2));
          return value(key * 10);
        });
        if (*got != key * 10) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(created, 8);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(cache.stats().misses, 8);
  EXPECT_EQ(cache.stats().hits, 32 * 200 - 8);
}

TEST(LruCache, DifferentKeysAreCreatedAtTheSameTime) {
  Cache cache(8);
  std::promise<void> first_started, second_started;
  auto meet = [](std::promise<void>& mine, std::promise<void>& other) {
    mine.set_value();
    if (other.get_future().wait_for(std::chrono::seconds(20)) != std::future_status::ready)
      throw std::runtime_error("the other key was not being created");
    return value(1);
  };
  auto first = std::async(std::launch::async, [&] {
    return cache.get_or_create(1, [&] { return meet(first_started, second_started); });
  });
  auto second = std::async(std::launch::async, [&] {
    return cache.get_or_create(2, [&] { return meet(second_started, first_started); });
  });
  EXPECT_NO_THROW(first.get());
  EXPECT_NO_THROW(second.get());
}

TEST(LruCache, TheLeastRecentlyUsedGoesFirst) {
  Cache cache(2);
  cache.get_or_create(1, [] { return value(1); });
  cache.get_or_create(2, [] { return value(2); });
  cache.get_or_create(1, [] { return value(-1); });  // a hit: 2 is now the oldest
  cache.get_or_create(3, [] { return value(3); });
  EXPECT_EQ(*cache.get_or_create(1, [] { return value(-1); }), 1);
  EXPECT_EQ(*cache.get_or_create(2, [] { return value(-2); }), -2);
  EXPECT_EQ(cache.stats().size, 2u);
  EXPECT_EQ(cache.stats().evictions, 2);
}

TEST(LruCache, AFailureReachesAllWhoWaitAndIsNotCached) {
  Cache cache(2);
  std::atomic<int> attempts{0}, failures{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t) {
    threads.emplace_back([&] {
      try {
        cache.get_or_create(1, [&]() -> std::shared_ptr<int> {
          ++attempts;
          std::this_thread::sleep_for(std::chrono::milliseconds(50));
          throw std::runtime_error("refused");
        });
      } catch (const std::runtime_error& error) {
        if (std::string(error.what()) == "refused") ++failures;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 16);
  EXPECT_LE(attempts, 16);
  EXPECT_EQ(cache.stats().size, 0u);
  EXPECT_EQ(*cache.get_or_create(1, [] { return value(7); }), 7);
}

// A destructor that uses the cache would deadlock if values died under its lock.
struct UsesCache {
  LruCache<int, UsesCache>* cache;
  std::atomic<int>* destroyed;
  ~UsesCache() {
    cache->stats();
    ++*destroyed;
  }
};

TEST(LruCache, EvictedAndClearedValuesDieOutsideTheLockAndNotWhileInUse) {
  std::atomic<int> destroyed{0};
  LruCache<int, UsesCache> cache(1);
  const auto make = [&] { return std::shared_ptr<UsesCache>(new UsesCache{&cache, &destroyed}); };
  auto held = cache.get_or_create(1, make);
  cache.get_or_create(2, make);
  EXPECT_EQ(destroyed, 0) << "key 1 was evicted but is in use";
  held.reset();
  EXPECT_EQ(destroyed, 1);
  cache.get_or_create(3, make);
  EXPECT_EQ(destroyed, 2);
  cache.clear();
  EXPECT_EQ(destroyed, 3);
  EXPECT_EQ(cache.stats().size, 0u);
}

TEST(LruCache, EvictionClearAndCreationRaceWithoutDamage) {
  Cache cache(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const int key = (i * 7 + t) % 16;
        if (*cache.get_or_create(key, [&] { return value(key); }) != key) ++wrong;
        if (i % 500 == t) cache.clear();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.stats().size, 4u);
}

}  // namespace
}  // namespace fastgemm

// cache_info() and clear_cache(): the caches of the stages as one.
#include "cache.hpp"

#include <atomic>
#include <mutex>

#include "compiler.hpp"
#include "disk_cache.hpp"
#include "fastgemm/gemm.hpp"
#include "loaded_kernel.hpp"

namespace fastgemm {
namespace {

std::atomic<std::uint64_t> generation{0};
std::mutex front_mutex;
FrontCache front_cache{nullptr, nullptr};

FrontCache current_front_cache() {
  std::lock_guard<std::mutex> lock(front_mutex);
  return front_cache;
}

}  // namespace

std::uint64_t cache_generation() { return generation.load(std::memory_order_acquire); }

void set_front_cache(const FrontCache& front) {
  std::lock_guard<std::mutex> lock(front_mutex);
  front_cache = front;
}

CacheInfo cache_info() {
  const LruStats loaded = loaded_kernel_stats();
  const CompileCounts compiled = compile_counts();
  const DiskCacheInfo disk = disk_cache().info();
  const FrontCache front = current_front_cache();
  CacheInfo info;
  info.loaded = static_cast<std::int64_t>(loaded.size);
  info.capacity = static_cast<std::int64_t>(loaded.capacity);
  info.hits = loaded.hits + (front.hits ? front.hits() : 0);
  info.misses = loaded.misses;
  info.evictions = loaded.evictions;
  info.compiles = compiled.compiles;
  info.disk_hits = compiled.disk_hits;
  info.disk_path = disk.path;
  info.disk_files = disk.files;
  info.disk_bytes = disk.bytes;
  return info;
}

void clear_cache(bool disk) {
  generation.fetch_add(1, std::memory_order_acq_rel);
  if (const FrontCache front = current_front_cache(); front.clear) front.clear();
  forget_loaded();
  forget_compiled();
  unload_retired();
  if (disk) disk_cache().clear();
}

}  // namespace fastgemm

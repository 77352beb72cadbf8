// How the caches of the stages act together: counting, and being dropped.
#pragma once

#include <cstdint>

namespace fastgemm {

// Grows with each clear_cache(): whoever keeps kernels of an older generation lets go of them.
std::uint64_t cache_generation();

// A cache in front of load_kernel() (the warm path's). clear_cache() calls `clear` before it
// unloads kernels; cache_info() adds `hits()` to its hits.
struct FrontCache {
  void (*clear)();
  std::int64_t (*hits)();
};
void set_front_cache(const FrontCache& front);

}  // namespace fastgemm

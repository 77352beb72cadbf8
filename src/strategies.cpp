// Tiling strategies: which block tiles are worth considering. To add one: a function, and a line in
// the list.
#include "planner.hpp"

namespace fastgemm {
namespace {

using Tilings = std::vector<Tiling>;

// A k-tile as deep as K needs, so that a short K is not padded to a long one.
int depth_for(const GemmProblem& p, int wanted) { return p.k <= 32 ? 32 : wanted; }

// For large products: the most arithmetic per byte of shared memory and L2.
Tilings large_tiles(const GemmProblem& p, const HardwareSpec&) {
  const int k = depth_for(p, 64);
  return {{256, 128, k}, {128, 256, k}, {256, 128, 32}, {128, 256, 32}};
}

// The middle ground: two CTAs an SM, one fetches while the other multiplies.
Tilings square_tiles(const GemmProblem& p, const HardwareSpec&) {
  return {{128, 128, depth_for(p, 64)}, {128, 128, 32}};
}

// For products with few tiles: smaller ones, so that every SM has work.
Tilings small_tiles(const GemmProblem& p, const HardwareSpec&) {
  const int k = depth_for(p, 64);
  return {{64, 128, k}, {128, 64, k}, {64, 64, k}, {64, 32, k}, {32, 64, k}, {32, 32, k}};
}

// For a few rows or columns (decode): no more of them than there are, and the other side long
// enough to keep the memory busy.
Tilings skinny_tiles(const GemmProblem& p, const HardwareSpec&) {
  Tilings t;
  const int k = depth_for(p, 128);
  for (int narrow : {16, 32})
    for (int wide : {32, 64, 128}) {
      if (p.m <= 64) t.push_back({narrow, wide, k});
      if (p.n <= 64) t.push_back({wide, narrow, k});
    }
  return t;
}

}  // namespace

const std::vector<Strategy>& strategy_list() {
  static const std::vector<Strategy> list = {
      {"large_tiles", large_tiles},
      {"square_tiles", square_tiles},
      {"small_tiles", small_tiles},
      {"skinny_tiles", skinny_tiles},
  };
  return list;
}

std::vector<std::string> strategies() {
  std::vector<std::string> names;
  for (const Strategy& s : strategy_list()) names.push_back(s.name);
  return names;
}

}  // namespace fastgemm

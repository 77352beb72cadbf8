// Tiling strategies: which block tiles are worth considering. To add one: a function and a line.
#include <algorithm>

#include "planner.hpp"

namespace fastgemm {
namespace {

using Tilings = std::vector<Tiling>;

// How deep a k-tile is: 64 suits ldmatrix and is one swizzle atom of the TMA; a K of 32 is not
// padded to it, and GPUs without cp.async have little shared memory and no registers to spare for
// more than 32.
int depth(const GemmProblem& p, Family family) {
  if (family == Family::sm90) return 64;
  return family < Family::sm80 || p.k <= 32 ? 32 : 64;
}

// A tile of family sm90 alone, and for two CTAs that share an operand. That pays for the longer
// one, whose bytes fewer CTAs fetch then, and for the other where both are shared widely anyway.
void add_clusters(Tilings& all, Tiling t, const GemmProblem& p) {
  const std::int64_t rows = ceil_div(p.m, t.block_m), cols = ceil_div(p.n, t.block_n);
  const bool wide = std::min(rows, cols) >= 6;
  all.push_back(t);
  t.cluster_m = 2;
  if (rows > 1 && (p.n >= p.m || wide)) all.push_back(t);
  t.cluster_m = 1, t.cluster_n = 2;
  const bool slices = t.block_m % 16 == 0 || t.block_k > 64;  // check(): whole eights of rows
  if (slices && cols > 1 && (p.m >= p.n || wide)) all.push_back(t);
}

// For large products: the most arithmetic per byte of shared memory and L2.
Tilings large_tiles(const GemmProblem& p, const HardwareSpec&, Family family) {
  const int k = depth(p, family);
  if (family == Family::sm80) return {{256, 128, k}, {128, 256, k}, {256, 128, 32}, {128, 256, 32}};
  Tilings all;
  if (family == Family::sm90)
    for (const auto& [m, n] : {std::pair{128, 256}, {256, 128}, {128, 192}, {128, 208}, {256, 192}})
      add_clusters(all, {m, n, k}, p);
  return all;
}

// The middle ground. On sm80: two CTAs an SM, one fetches while the other multiplies.
Tilings square_tiles(const GemmProblem& p, const HardwareSpec&, Family family) {
  const int k = depth(p, family);
  if (family == Family::sm80) return {{128, 128, k}, {128, 128, 32}};
  if (family < Family::sm80) return {{128, 128, k}, {128, 64, k}, {64, 128, k}};
  Tilings all;
  for (int block_n : {96, 128, 160}) add_clusters(all, {128, block_n, k}, p);
  return all;
}

// For products of several tiles an SM: two warpgroups take them in turns, so that stores cost no
// time but at the end. The width that leaves the least of the last wave idle wins. Gates and ups
// meet in tiles of 64 rows a warpgroup only.
Tilings ping_pong_tiles(const GemmProblem& p, const HardwareSpec& hw, Family family) {
  Tilings all;
  if (family != Family::sm90 || p.gated()) return all;
  for (int block_n : {128, 160, 192}) {
    if (ceil_div(p.m, 128) * ceil_div(p.n, block_n) * p.batch <= hw.sms) continue;
    Tiling t = {128, block_n, depth(p, family)};
    t.ping_pong = true;
    add_clusters(all, t, p);
  }
  return all;
}

// For products with few tiles: smaller ones, so that every SM has work.
Tilings small_tiles(const GemmProblem& p, const HardwareSpec&, Family family) {
  const int k = depth(p, family);
  if (family == Family::sm90) return {{64, 64, k}, {64, 128, k}, {128, 64, k}};
  return {{64, 128, k}, {128, 64, k}, {64, 64, k}, {64, 32, k}, {32, 64, k}, {32, 32, k}};
}

// For products of a few waves of tiles (family sm90): the narrowest tile that still needs no more
// waves, since an SM that is idle in the last wave costs as much as one that works. Up to 256
// columns (tokens), less than 64 rows may fit best.
Tilings wave_fitting_tiles(const GemmProblem& p, const HardwareSpec& hw, Family family) {
  Tilings all;
  if (family != Family::sm90) return all;
  const bool m_major = p.a.col_stride != 1;  // A contiguous along m comes in boxes of 64
  const bool n_major = p.b.row_stride != 1;  // and B along n
  const int step = n_major ? 64 : 16;
  // Up to 32 tokens stay together: a second column of tiles would read all weights again.
  const int together = p.n <= 32 ? static_cast<int>((p.n + 15) / 16 * 16) : 16;
  for (int block_m : {48, 56, 64, 128, 192, 256}) {
    if (block_m < 64 && (m_major || p.n > 256)) continue;
    const int narrowest = std::max(step, block_m <= 64 ? together : 48);
    const int widest = block_m >= 192 ? 192 : 256;  // what registers allow
    for (int waves = 1; waves <= 4; ++waves)
      for (int block_n = narrowest; block_n <= widest; block_n += step) {
        const std::int64_t tiles = ceil_div(p.m, block_m) * ceil_div(p.n, block_n) * p.batch;
        if (tiles > static_cast<std::int64_t>(waves) * hw.sms) continue;
        for (int block_k : {64, 128}) {
          // Long copies, as long as shared memory holds three stages of them.
          if (block_k == 128 && (p.k % 64 != 0 || block_m + block_n > 256)) continue;
          Tiling t = {block_m, block_n, block_k};
          add_clusters(all, t, p);
          t.ping_pong = true;
          if (tiles > hw.sms && block_m <= 128 && block_n > 32 && !p.gated())
            add_clusters(all, t, p);
        }
        break;
      }
  }
  return all;
}

// For few tiles and a deep K: several CTAs for each, until every SM has work and at least eight
// k-tiles of it. On sm90 a cluster shares K, then splits do.
Tilings split_k_tiles(const GemmProblem& p, const HardwareSpec& hw, Family family) {
  Tilings all;
  if (family < Family::sm80 || p.k < 512) return all;
  const auto add = [&](Tiling t) {
    const std::int64_t tiles = ceil_div(p.m, t.block_m) * ceil_div(p.n, t.block_n) * p.batch;
    for (int cluster_k : {1, 2, 4, 8}) {
      if (cluster_k > 1 && family != Family::sm90) break;
      const std::int64_t room = clusters_of(cluster_k, hw) / std::max<std::int64_t>(tiles, 1);
      const std::int64_t most = std::min(room, p.k / (8 * t.block_k * cluster_k));
      if (most < 1) break;
      t.cluster_k = cluster_k;
      for (std::int64_t split : {most, most / 2, std::int64_t{1}}) {
        if (split < 1 || split * cluster_k < 2) continue;
        t.split_k = static_cast<int>(std::min<std::int64_t>(split, 64));
        all.push_back(t);
      }
    }
  };
  const bool sm90 = family == Family::sm90, m_major = p.a.col_stride != 1;
  // Weights that neither the TMA nor 16-byte reads take as they lie, and few tokens beside them.
  const bool shifts_b = traits_of(p).shifts_b(), few = p.m <= 32 && shifts_b;
  for (int block_m : {16, 32, 48, 64, 128, 256})
    for (int block_n : {16, 32, 48, 64, 96, 128, 256}) {
      if (!sm90 && (block_m < (few ? 16 : 64) || block_n == 48 || block_n == 96 || block_n == 256))
        continue;
      if (sm90 && block_m < 64 && (m_major || block_m == 16)) continue;
      // So many rows of A pay where each row of B is straightened once for all of them.
      if (block_m > 128 && !(sm90 && shifts_b && block_n <= 128)) continue;
      // Half of a tile is not left empty.
      if (block_m > 64 && block_m >= 2 * p.m) continue;
      if (block_n > 16 && block_n >= 2 * p.n) continue;
      add({block_m, block_n, 64});
      if (sm90 && block_n <= 64 && p.k % 64 == 0) add({block_m, block_n, 128});
    }
  return all;
}

// For up to 128 tokens on Hopper (oriented with the tokens as columns): every weight is read once,
// by equal tiles on all SMs. Of M / SMs rows where those are 64 at most, several a CTA where not; a
// cluster shares K where rows would be few, or the weights, with half of the tokens for each CTA.
Tilings token_tiles(const GemmProblem& p, const HardwareSpec& hw, Family family) {
  Tilings all;
  if (family != Family::sm90 || p.n > 128) return all;
  const bool m_major = p.a.col_stride != 1;  // A contiguous along m comes in boxes of 64
  const bool n_major = p.b.row_stride != 1;  // and B along n
  for (const auto& [cluster_k, columns] : {std::pair{1, 1}, {2, 1}, {4, 1}, {1, 2}}) {
    if (p.n <= 16 * (columns - 1)) continue;
    const std::int64_t tokens =
        ceil_div(ceil_div(p.n, columns), n_major ? 64 : 16) * (n_major ? 4 : 1);
    // Shared out among the cluster in 16s.
    const auto block_n = static_cast<int>(
        16 * (tokens < cluster_k ? tokens : ceil_div(tokens, cluster_k) * cluster_k));
    const std::int64_t clusters = clusters_of(cluster_k * columns, hw);
    const std::int64_t fewest = std::max<std::int64_t>(ceil_div(p.m * p.batch, clusters * 64), 1);
    for (std::int64_t rounds = fewest; rounds < fewest + 3; ++rounds) {
      const std::int64_t rows = ceil_div(ceil_div(p.m * p.batch, clusters * rounds), 8) * 8;
      const int block_m = m_major ? 64 : static_cast<int>(std::max<std::int64_t>(rows, 16));
      // Few and long copies, as long as shared memory holds five stages of them.
      for (int block_k : {256, 128, 64})
        if (block_k == 64 || (p.k % 64 == 0 && (block_m + block_n) * block_k * 2 <= 40 << 10)) {
          Tiling t = {block_m, block_n, block_k};
          t.cluster_k = cluster_k;
          t.cluster_n = columns;
          all.push_back(t);
          break;
        }
      if (rows <= 16 || m_major) break;
    }
  }
  return all;
}

// For a few rows or columns (decode): no more of them than there are, and the other side long
// enough to keep the memory busy.
Tilings skinny_tiles(const GemmProblem& p, const HardwareSpec&, Family family) {
  Tilings t;
  if (family == Family::sm90) return t;
  const int k = depth(p, family) == 64 ? 128 : 32;
  for (int narrow : {16, 32})
    for (int wide : {32, 64, 128}) {
      if (p.m <= 64) t.push_back({narrow, wide, k});
      if (p.n <= 64) t.push_back({wide, narrow, k});
    }
  return t;
}

// For a few rows (family gemv): warps along K or beside each other, with 64 bytes of B a lane under
// way where k is contiguous and 128 where n is or Tensor Cores leave the registers for it. Few CTAs
// split K.
Tilings gemv_tiles(const GemmProblem& p, const HardwareSpec& hw, Family) {
  Tilings all;
  const bool k_major = major_of(p.b.col_stride, p.b.row_stride) == Major::k;
  const bool aligned = traits_of(p).b_copy_bytes == 16;
  const auto add = [&](Tiling t) {
    all.push_back(t);
    const std::int64_t ctas = ceil_div(p.m, t.block_m) * ceil_div(p.n, t.block_n) * p.batch;
    const std::int64_t most = std::min(hw.sms / std::max<std::int64_t>(ctas, 1), p.k / t.block_k);
    if (most < 2) return;
    t.split_k = static_cast<int>(std::min<std::int64_t>(most, 64));
    all.push_back(t);
  };
  // `stage_k`: of a warp; `stages`: of that under way at once.
  const auto add_warps = [&](int rows, int cols, int stage_k, int stages) {
    for (int warps_k : {2, 4, 8, 16}) {
      const int block_k = warps_k * stage_k * stages;
      if (warps_k > 2 && block_k >= 2 * p.k) continue;  // half of the warps would idle
      Tiling t{rows, cols * std::max(8 / warps_k, 1), block_k};
      t.warp_n = cols;
      t.num_stages = stages;
      add(t);
    }
  };
  const bool tensor = k_major && p.m > 2 && hw.arch.mma_m16n8k16;
  const int few = static_cast<int>(std::clamp<std::int64_t>(p.m, 1, aligned && !k_major ? 8 : 4));
  if (k_major && (p.m <= 4 || !tensor)) add_warps(few, 2, 256, 2), add_warps(few, 4, 256, 1);
  if (!k_major)
    for (int cols : {32, 64, 128}) add_warps(few, cols, 2048 / cols, 1);
  if (tensor) {
    const int rows = p.m <= 8 ? 8 : p.m <= 16 ? 16 : p.m <= 32 ? 32 : 64;
    add_warps(rows, 16, 32, aligned && rows <= 16 ? 4 : 2);
  }
  return all;
}

}  // namespace

const std::vector<Strategy>& strategy_list() {
  static const std::vector<Strategy> list = {
      {"token_tiles", token_tiles},
      {"large_tiles", large_tiles},
      {"square_tiles", square_tiles},
      {"ping_pong_tiles", ping_pong_tiles},
      {"small_tiles", small_tiles},
      {"split_k_tiles", split_k_tiles},
      {"wave_fitting_tiles", wave_fitting_tiles},
      {"skinny_tiles", skinny_tiles},
      {"gemv_tiles", gemv_tiles, true},
  };
  return list;
}

std::vector<std::string> strategies() {
  std::vector<std::string> names;
  for (const Strategy& s : strategy_list()) names.push_back(s.name);
  return names;
}

}  // namespace fastgemm

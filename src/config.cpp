// GemmConfig and KernelConfig as values: text, equality, hash; what a kernel needs of an SM.
#include <algorithm>
#include <iterator>
#include <tuple>

#include "fastgemm/error.hpp"
#include "planner.hpp"

namespace fastgemm {

namespace {

constexpr Family FAMILIES[] = {Family::sm70, Family::sm75, Family::sm80, Family::sm90,
                               Family::gemv};

// The fields that wishes and kernels have in common, for ==, hash and text: a new one stands in
// both lists.
template <class Config>
auto tuning_fields(const Config& c) {
  return std::tie(c.family, c.block_m, c.block_n, c.block_k, c.warp_m, c.warp_n, c.split_k,
                  c.num_stages, c.swizzle, c.swizzle_bytes, c.raster_group, c.swap_ab,
                  c.staged_stores, c.repack_a, c.repack_b, c.shift_a, c.shift_b, c.cluster_m,
                  c.cluster_n, c.cluster_k, c.multicast, c.tma_stores, c.dependent_launch,
                  c.prefetch, c.ping_pong, c.persistent);
}
constexpr const char* TUNING_NAMES[] = {
    "family",        "block_m",    "block_n",   "block_k",       "warp_m",           "warp_n",
    "split_k",       "num_stages", "swizzle",   "swizzle_bytes", "raster_group",     "swap_ab",
    "staged_stores", "repack_a",   "repack_b",  "shift_a",       "shift_b",          "cluster_m",
    "cluster_n",     "cluster_k",  "multicast", "tma_stores",    "dependent_launch", "prefetch",
    "ping_pong",     "persistent"};

std::string text(Family f) { return name(f); }
std::string text(const std::string& s) { return s; }
std::string text(bool b) { return b ? "true" : "false"; }
std::string text(int i) { return std::to_string(i); }

auto all_fields(const KernelConfig& c) {
  return std::tuple_cat(tuning_fields(c),
                        std::tie(c.in, c.out, c.a_major, c.b_major, c.a_copy_bytes, c.b_copy_bytes,
                                 c.d_vector, c.has_c, c.epilogue_id, c.apart));
}

}  // namespace

const char* name(Family family) {
  switch (family) {
    case Family::sm70:
      return "sm70";
    case Family::sm75:
      return "sm75";
    case Family::sm80:
      return "sm80";
    case Family::sm90:
      return "sm90";
    case Family::gemv:
      return "gemv";
  }
  return "?";
}

Family family_from_name(std::string_view wanted) {
  std::string known;
  for (Family f : FAMILIES) {
    if (wanted == name(f)) return f;
    known += std::string(known.empty() ? "" : ", ") + name(f);
  }
  throw InvalidValue("unknown kernel family '" + std::string(wanted) + "'; there are " + known);
}

bool GemmConfig::operator==(const GemmConfig& o) const {
  return tuning_fields(*this) == tuning_fields(o) && strategy == o.strategy;
}

std::string GemmConfig::str() const {
  std::string s;
  const auto add = [&](const char* field, const auto& value) {
    if (value) s += (s.empty() ? "" : ", ") + std::string(field) + "=" + text(*value);
  };
  std::apply(
      [&](const auto&... value) {
        static_assert(sizeof...(value) == std::size(TUNING_NAMES));
        const char* const* name = TUNING_NAMES;
        (add(*name++, value), ...);
      },
      tuning_fields(*this));
  add("strategy", strategy);
  return s;
}

bool KernelConfig::operator==(const KernelConfig& o) const {
  return all_fields(*this) == all_fields(o);
}

std::size_t KernelConfigHash::operator()(const KernelConfig& c) const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::apply(
      [&](auto... field) {
        ((hash = (hash ^ static_cast<std::uint64_t>(field)) * 0x9e3779b97f4a7c15u,
          hash ^= hash >> 29),
         ...);
      },
      all_fields(c));
  return hash;
}

std::string KernelConfig::str() const {
  std::string s = std::string(name(family)) + " " + std::to_string(block_m) + "x" +
                  std::to_string(block_n) + "x" + std::to_string(block_k) + ", warp " +
                  std::to_string(warp_m) + "x" + std::to_string(warp_n) + ", " +
                  std::to_string(num_stages) + (num_stages == 1 ? " stage" : " stages");
  if (family != Family::gemv) s += ", raster " + std::to_string(raster_group);
  if (split_k > 1) s += ", K split in " + std::to_string(split_k);
  if (split_k == 1 && apart) s += ", finished apart";
  if (cluster() > 1)
    s += ", cluster " + std::to_string(cluster_m) + "x" + std::to_string(cluster_n) + "x" +
         std::to_string(cluster_k) + (multicast || cluster_k > 1 ? "" : " without multicast");
  if (ping_pong)
    s += ", ping-pong";
  else if (persistent)
    s += ", persistent";
  if (swap_ab) s += ", operands swapped";
  if (repack_a || repack_b)
    s += std::string(", ") + (repack_a ? repack_b ? "A and B" : "A" : "B") + " repacked";
  if (shifts()) s += std::string(", ") + (shift_a ? shift_b ? "A and B" : "A" : "B") + " shifted";
  if (tma_stores) s += ", TMA stores";
  if (dependent_launch) s += prefetch ? ", dependent launch with prefetch" : ", dependent launch";
  if (!swizzle && family != Family::gemv) s += ", no swizzle";
  if (swizzle && swizzle_bytes != 128)
    s += ", swizzle of " + std::to_string(swizzle_bytes) + " bytes";
  if (!staged_stores && family != Family::gemv) s += ", direct stores";
  if (epilogue) s += ", epilogue " + epilogue->expression;
  return s;
}

int KernelConfig::threads() const {
  if (family == Family::sm90)
    return (shifts() ? 4 : consumers() + 1) * warpgroup;  // device/ring_sm90.cuh
  if (family == Family::gemv) return block_n / warp_n * (block_k / gemv_warp_k(*this)) * 32;
  return block_m / warp_m * (block_n / warp_n) * 32;
}

int KernelConfig::consumers() const { return block_m / warp_m * (ping_pong ? 2 : 1); }

int finished_cols(const KernelConfig& c) { return std::max(c.block_n / c.cluster_k, 16); }

int store_panel_cols(const KernelConfig& c) {
  const int cols = finished_cols(c) / (c.gate_along_n() ? 2 : 1);
  return cols % 64 == 0 ? 64 : cols % 32 == 0 ? 32 : 16;
}

bool gemv_on_tensor_cores(const KernelConfig& c) {
  return c.b_major == Major::k && c.block_m % 8 == 0;
}

int gemv_warp_k(const KernelConfig& c) {
  const int lanes_n = gemv_on_tensor_cores(c) ? 8 : c.b_major == Major::k ? 1 : c.warp_n / 8;
  return 32 / lanes_n * 8 * c.num_stages;
}

int shared_bytes(const KernelConfig& c) {
  if (c.family == Family::gemv) return c.block_k / gemv_warp_k(c) * c.block_m * c.block_n * 4;
  // The epilogue's staging panels (device/epilogue.cuh): rows padded by 8, float32.
  const auto panel = [](int rows, int cols) { return rows * (cols + 8) * 4; };
  // A shifted row is one chunk of eight longer (device/shifted_rows.cuh), and family sm90 has both
  // it and the row (device/produce_shifted.cuh).
  const bool sm90 = c.family == Family::sm90;
  const auto tile = [&](int outer, Major major, bool shift) {
    const int rows = major == Major::k ? outer : c.block_k;
    return (outer * c.block_k * (shift && sm90 ? 2 : 1) + (shift ? rows * 8 : 0)) * 2;
  };
  const int stages = (tile(c.block_m, c.a_major, c.shifts_rows_of_a()) +
                      tile(c.block_n, c.b_major, c.shifts_rows_of_b())) *
                     c.num_stages;
  const int ring = sm90 ? static_cast<int>(ceil_div(stages, 1024)) * 1024 : stages;
  if (sm90) {
    const int barriers = (c.shifts() ? 4 : 2) * c.num_stages * 8;
    const int consumers = c.consumers();
    const int store_panels = 2 * std::min(finished_cols(c) / (c.gate_along_n() ? 2 : 1), 64) * 64 *
                             2;  // of a warpgroup, device/epilogue_sm90.cuh
    const int staging = c.tma_stores ? store_panels : c.staged_stores ? 4 * panel(16, 32) : 0;
    // device/cluster_sum.cuh: what a CTA receives, and two barriers.
    const int slot = static_cast<int>(ceil_div(c.warp_m, 64)) * 64 * finished_cols(c) * 4;
    const int sums = c.cluster_k > 1 ? c.cluster_k * consumers * slot + 16 : 0;
    // WGMMA reads 64 rows of A, whether a warpgroup has them or not.
    const int read = (c.block_m + c.block_n) * c.block_k * 2 * c.num_stages -
                     c.block_n * c.block_k * 2 + (64 - std::min(c.warp_m, 64)) * c.swizzle_bytes;
    const int stored = consumers * staging;
    const int ring_and_stores = c.persistent ? ring + stored : std::max(ring, stored);
    return std::max(ring_and_stores + sums + barriers, read);
  }
  if (!c.staged_stores) return ring;
  const int warps = c.threads() / 32;
  int rows = c.warp_m;  // as many as fit into the ring
  while (rows > 16 && (warps * panel(rows, c.warp_n) > ring || c.warp_m % rows != 0)) rows -= 16;
  return std::max(ring, warps * panel(rows, c.warp_n));
}

// Sums, rows of A, and the reads of B with all that they remember; fits what NVRTC takes.
static int estimated_gemv_registers(const KernelConfig& c) {
  const bool aligned = c.b_copy_bytes == 16, k_major = c.b_major == Major::k;
  if (gemv_on_tensor_cores(c))
    return aligned ? 46 + c.block_m * 13 / 5 + 2 * c.num_stages * 4
                   : 20 + c.block_m * 21 / 10 + 2 * c.num_stages * 19;
  const int cols = k_major ? c.warp_n : 8;
  const int words = aligned ? 4 : k_major ? 13 : 15;
  return c.block_m * (cols + 8) + cols * c.num_stages * words + (aligned ? 28 : 56);
}

// Places in memory that an epilogue remembers: of an array of elements, its rows' too.
static int array_pointers(const KernelConfig& c) {
  int count = 0;
  if (c.epilogue)
    for (const auto& array : c.epilogue->arrays) count += array.kind == ArrayKind::element ? 2 : 1;
  return count;
}

int estimated_registers(const KernelConfig& c) {
  const int fused = c.epilogue ? 16 : 0;  // what its arrays and intermediate values take
  if (c.family == Family::gemv) return estimated_gemv_registers(c) + fused;
  if (c.family == Family::sm90) {
    const int accumulators = static_cast<int>(ceil_div(c.warp_m, 64)) * 64 *
                             (c.block_n + (c.cluster_k > 1 ? finished_cols(c) : 0)) / warpgroup;
    // Ordinary stores keep addresses and strides of C and D beside so many; of partial sums that a
    // cluster has added up, those of the next tile too.
    const bool sums_of_tiles = c.persistent && c.cluster_k > 1 && c.split_k > 1;
    // The TMA needs none, but the arrays of an epilogue do: two, or one of elements, find room.
    const int wide = c.tma_stores    ? 8 * std::max(array_pointers(c) - 2, 0)
                     : sums_of_tiles ? 40
                                     : 16;
    const int stores = accumulators > 128 ? wide : 0;
    // What gates and ups leave is kept beside them.
    const int gated = c.gate_along_n() ? accumulators / 2 + 8 : 0;
    return accumulators + 40 + stores + gated;
  }
  const int accumulators = c.warp_m * c.warp_n / 32;
  const int per_fragment = c.family == Family::sm70 ? 8 : 4;
  const int fragments = 2 * per_fragment * (c.warp_m + c.warp_n) / 16;
  const int staged_tile =
      c.family == Family::sm80 ? 0 : (c.block_m + c.block_n) * c.block_k / 2 / c.threads();
  const int transposed_addresses = c.a_major == Major::mn && c.b_major == Major::mn ? 20 : 0;
  const int gathered = (c.shift_a ? 8 : 0) + (c.shift_b ? 8 : 0);
  return accumulators + fragments + staged_tile + transposed_addresses + gathered + 44;
}

int register_limit(const KernelConfig& c, const HardwareSpec& hw) {
  if (c.family != Family::sm90) return hw.arch.registers_per_thread;
  const int consumers = c.consumers();
  // device/gemm_kernel_sm90.cuh
  if (c.shifts()) return consumers == 1 ? 200 : 168;
  return consumers == 1 ? hw.arch.registers_per_thread : consumers == 2 ? 232 : 152;
}

int launch_ctas_per_sm(const KernelConfig& c) {
  const bool one_consumer = c.consumers() == 1 && c.threads() <= 2 * warpgroup;
  const bool narrow = c.block_n < 64 || c.prefetch;
  return c.family == Family::sm90 && one_consumer && !narrow && estimated_registers(c) <= 128 ? 2
                                                                                              : 1;
}

int ctas_per_sm(const KernelConfig& c, const HardwareSpec& hw) {
  const int by_shared = hw.arch.shared_per_sm / (shared_bytes(c) + hw.arch.shared_reserved);
  const int by_warps = hw.arch.warps_per_sm / (c.threads() / 32);
  int registers = (std::min(estimated_registers(c), register_limit(c, hw)) + 7) / 8 * 8;
  if (c.family == Family::sm90)
    registers = hw.arch.registers_per_sm / (c.threads() * launch_ctas_per_sm(c));
  const int by_registers = hw.arch.registers_per_sm / (registers * c.threads());
  return std::min({by_shared, by_warps, by_registers, hw.arch.ctas_per_sm});
}

}  // namespace fastgemm

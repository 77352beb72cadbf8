// check(): the one predicate of what can run, in words. Planner, tuner and overrides all ask it.
#include "fastgemm/error.hpp"
#include "planner.hpp"

namespace fastgemm {
namespace {

std::string need(const std::string& what, long long needed, const std::string& unit,
                 long long limit) {
  return "needs " + std::to_string(needed) + " " + unit + " of " + what + ", the limit is " +
         std::to_string(limit);
}

std::string refuse_instructions(const KernelConfig& k, const ArchSpec& arch) {
  const std::string on = " on " + arch_name(arch.cc);
  if (k.family == Family::sm80 && !(arch.cp_async && arch.mma_m16n8k16))
    return "family sm80 needs cp.async and mma.m16n8k16 (compute capability 8.0), not there" + on;
  if (k.family == Family::sm75 && !arch.ldmatrix)
    return "family sm75 needs ldmatrix (compute capability 7.5), not there" + on;
  if (k.family == Family::sm90 && !arch.tma_wgmma)
    return "family sm90 needs the TMA and wgmma (compute capability 9.0), not there" + on;
  if (k.in == DType::bf16 && !arch.bf16)
    return "bfloat16 needs compute capability 8.0; use float16" + on;
  if (k.in == DType::bf16 && k.family < Family::sm80)
    return std::string("family ") + name(k.family) +
           " multiplies float16 only; bfloat16 needs family sm80";
  return {};
}

std::string refuse_shape_sm90(const KernelConfig& k) {
  if (k.swizzle_bytes != 128 && k.swizzle_bytes != 64 && k.swizzle_bytes != 32 &&
      k.swizzle_bytes != 16)
    return "swizzle_bytes has to be 128, 64 or 32, or 16: no swizzle";
  if (k.swizzle != (k.swizzle_bytes > 16))
    return "swizzle and swizzle_bytes disagree: family sm90 without a swizzle has rows of 16 bytes";
  const int span = k.swizzle_bytes / 2;  // elements of a row
  if (k.block_k != 32 && k.block_k != 64 && k.block_k != 128 && k.block_k != 256)
    return "family sm90 needs block_k 64, 128 or 256, or 32 with swizzle_bytes of 64 or less";
  if (k.block_k % span != 0)
    return "family sm90 needs block_k 64, 128 or 256: whole 128-byte swizzle atoms; swizzle_bytes "
           "64 allows 32";
  if (k.block_k == 32 && k.block_m % 16 != 0)
    return "block_k 32 needs block_m a multiple of 16: stages of whole 1024 bytes";
  if (k.warp_m != 128 && (k.warp_m < 8 || k.warp_m > 64 || k.warp_m % 8 != 0))
    return "family sm90 needs warp_m 128 or a multiple of 8 up to 64, the rows of a warpgroup";
  if (k.a_major == Major::mn && k.warp_m % 64 != 0)
    return "family sm90 needs warp_m a multiple of 64 where A is contiguous along m";
  if (k.block_m < k.warp_m || k.block_m % k.warp_m != 0 || k.block_m / k.warp_m > 3 ||
      k.block_m > 256)
    return "family sm90 has 1 to 3 consumer warpgroups: block_m has to be 1, 2 or 3 times warp_m, "
           "256 at most";
  if (k.block_n % 16 != 0 || k.block_n < 16 || k.block_n > 256 || k.warp_n != k.block_n)
    return "family sm90 needs block_n a multiple of 16 up to 256, and warp_n equal to it";
  if (k.b_major == Major::mn && k.block_n % span != 0)
    return "family sm90 needs block_n a multiple of " + std::to_string(span) +
           " where B is contiguous along n: whole rows of swizzle_bytes";
  const int cluster_tiles = k.cluster_m * k.cluster_n;
  if (k.cluster_m < 1 || k.cluster_n < 1 || cluster_tiles > 2)
    return "clusters are 1x1, 2x1 or 1x2";
  if (k.cluster_k != 1 && k.cluster_k != 2 && k.cluster_k != 4 && k.cluster_k != 8)
    return "cluster_k has to be 1, 2, 4 or 8";
  // A slice of a k-tile of one swizzle atom is some of its rows, of several atoms some of those.
  // Eight gates and their ups are copied together.
  const auto uneven = [&](Major major, int block, int slices, bool gated) {
    const int rows = major == Major::k ? block : k.block_k;
    const bool by_rows = major == Major::mn || k.block_k == span;
    return k.multicast && by_rows && rows % ((gated ? 16 : 8) * slices) != 0;
  };
  const auto shared_out = [](bool gated, const std::string& operand, const std::string& knobs) {
    return "multicast shares " + operand + " out in " + (gated ? "16s" : "8s") +
           " of its rows: " + knobs + " a multiple of " + (gated ? "32" : "16") +
           ", or a larger block_k";
  };
  if (uneven(k.a_major, k.block_m, k.cluster_n, k.gate_along_m()))
    return shared_out(k.gate_along_m(), "A", "cluster_n 2 needs block_m");
  if (uneven(k.b_major, k.block_n, k.cluster_m, k.gate_along_n()))
    return shared_out(k.gate_along_n(), "B", "cluster_m 2 needs block_n");
  if (k.cluster_k > 1 && cluster_tiles > 1)
    return "cluster_k above 1 needs cluster_m and cluster_n 1";
  if (k.cluster_k < k.block_n / 16 && k.block_n / 16 % k.cluster_k != 0)
    return "cluster_k shares block_n out in 16s: a multiple of 16 * cluster_k, or fewer";
  if (k.ping_pong && k.block_m != k.warp_m)
    return "ping_pong needs warp_m equal to block_m: a warpgroup has a block tile to itself";
  if (k.ping_pong && k.cluster_k > 1)
    return "ping_pong needs cluster_k 1: the exchange of sums would wait for both warpgroups";
  if (k.ping_pong && !k.persistent)
    return "ping_pong needs persistent: with one block tile, the second warpgroup had none";
  if (k.prefetch && !k.dependent_launch) return "prefetch needs dependent_launch";
  if (k.shifts()) {
    if (k.consumers() > 2)
      return "shift_a and shift_b need one or two consumer warpgroups: others fetch and straighten "
             "rows";
    if (cluster_tiles > 1)
      return "shift_a and shift_b need cluster_m and cluster_n 1: each CTA straightens its own "
             "rows";
    if (k.num_stages == 1)
      return "shift_a and shift_b need num_stages 2 or more in family sm90: one k-tile is fetched "
             "while another is straightened";
    if ((k.gate_along_m() && k.shifts_rows_of_a()) || (k.gate_along_n() && k.shifts_rows_of_b()))
      return "the columns of gates and ups come by the TMA: repack_b in place of shift_b";
    if (k.prefetch && k.shifts_rows_of_a())
      return "prefetch is the TMA's: not with shifted rows of the operand that it fetches first";
  }
  if (k.multicast && cluster_tiles == 1)
    return "multicast needs a cluster: cluster_m or cluster_n 2";
  if (k.threads() > 384 && k.block_n > 192)
    return "the threads of four warpgroups, as three consumers or shifted rows need them, have 128 "
           "registers when they start: block_n up to 192";
  if (k.a_copy_bytes != 16 || k.b_copy_bytes != 16)
    return "family sm90 needs 16-byte aligned addresses and strides, and one unit stride, in A and "
           "B";
  if (k.gate_along_n() && (finished_cols(k) % 32 != 0 || k.warp_m > 64 || !k.staged_stores))
    return "a gated epilogue needs staged_stores, warp_m 64 at most, and a multiple of 32 columns "
           "of the block tile in every CTA";
  if (k.gate_along_m() && (k.warp_m % 16 != 0 || k.tma_stores))
    return "a gated epilogue of swapped operands needs a multiple of 16 rows a warpgroup, and "
           "stores D by ordinary stores";
  if (k.gate_along_m() && finished_cols(k) > 16 && finished_cols(k) % 32 != 0)
    return "a gated epilogue needs 16 columns of the block tile, or a multiple of 32, in every CTA";
  if (k.tma_stores && k.finishes_apart())
    return "split_k leaves partial sums in float32 by ordinary stores: tma_stores has to be off";
  if (k.tma_stores && (k.has_c || size_of(k.out) != 2 || !k.staged_stores))
    return "tma_stores needs staged_stores, a 16-bit D with 16-byte aligned rows, and beta 0";
  return {};
}

// The knobs that are sm90's alone.
bool has_sm90_knobs(const KernelConfig& k) {
  return k.cluster_m != 1 || k.cluster_n != 1 || k.cluster_k != 1 || k.multicast || k.tma_stores ||
         k.prefetch || k.ping_pong || k.persistent;
}

std::string refuse_shift(const KernelConfig& k) {
  if (!k.shifts()) return {};
  if (k.family != Family::sm80 && k.family != Family::sm90)
    return std::string("shift_a and shift_b are knobs of families sm80 and sm90: family ") +
           name(k.family) + " reads rows as they lie";
  if ((k.shift_a && k.repack_a) || (k.shift_b && k.repack_b))
    return "an operand is repacked or shifted, not both: its copy is aligned";
  return {};
}

std::string refuse_shape_gemv(const KernelConfig& k, const ArchSpec& arch) {
  if (has_sm90_knobs(k) || k.swizzle || k.staged_stores || k.raster_group != 0 || k.repack_a ||
      k.repack_b)
    return "family gemv reads each element of B once, into registers: it has no swizzle, raster "
           "groups, clusters, multicast, prefetch, staged or TMA stores, ping-pong, persistent "
           "CTAs, or repacking";
  if (k.dependent_launch && arch.cc < 90)
    return "dependent launch needs compute capability 9.0, not there on " + arch_name(arch.cc);
  const bool k_major = k.b_major == Major::k, tensor = gemv_on_tensor_cores(k);
  if (k.block_m < 1 || k.warp_m != k.block_m || k.block_m > (tensor ? 64 : k_major ? 7 : 8))
    return "family gemv needs warp_m equal to block_m, which is 1 to 8 or, where k is contiguous "
           "in B, also 16, 24 .. 64";
  if (tensor && !arch.mma_m16n8k16)
    return "block_m of 8 rows and more needs mma.m16n8k16 (compute capability 8.0), not there on " +
           arch_name(arch.cc);
  if (tensor && k.warp_n != 16)
    return "family gemv needs warp_n 16 where block_m is a multiple of 8 and k contiguous in B: "
           "the rows of an mma tile";
  const auto power_of_two = [](int x) { return x > 0 && (x & (x - 1)) == 0; };
  if (!tensor &&
      (!power_of_two(k.warp_n) || k.warp_n > (k_major ? 8 : 256) || (!k_major && k.warp_n < 8)))
    return k_major ? "family gemv needs warp_n 1, 2, 4 or 8 where k is contiguous in B: columns of "
                     "a lane"
                   : "family gemv needs warp_n 8, 16 .. 256 where n is contiguous in B: eight "
                     "columns a lane";
  if (k.num_stages < 1 || k.num_stages > 8) return "family gemv needs num_stages 1 to 8";
  if (k.block_n < k.warp_n || k.block_n % k.warp_n != 0 || k.block_n > 4096)
    return "family gemv needs block_n a multiple of warp_n, up to 4096";
  if (k.block_k < 1 || k.block_k > 1 << 16 || k.block_k % gemv_warp_k(k) != 0)
    return "family gemv needs block_k a multiple of the " + std::to_string(gemv_warp_k(k)) +
           " elements of K that a warp reads in one step, up to 65536";
  if (k.threads() > 1024)
    return "has " + std::to_string(k.threads()) +
           " threads, the limit is 1024: make block_n or block_k smaller";
  return {};
}

std::string refuse_shape(const KernelConfig& k) {
  if (has_sm90_knobs(k) || k.swap_ab || k.dependent_launch)
    return std::string("family ") + name(k.family) +
           " has no clusters, multicast, swapped operands, TMA stores, dependent launch, ping-pong "
           "or persistent CTAs: they need family sm90";
  const auto multiple = [](int value, int of) { return value > 0 && value % of == 0; };
  if (!multiple(k.block_m, 16) || !multiple(k.block_n, 16) || k.block_m > 512 || k.block_n > 512)
    return "block_m and block_n have to be multiples of 16 up to 512";
  if (!multiple(k.block_k, 32) || k.block_k > 256)
    return "block_k has to be a multiple of 32 up to 256 (fragments are loaded for pairs of "
           "16-deep slices)";
  if (!multiple(k.warp_m, 16) || !multiple(k.warp_n, 16) || k.block_m % k.warp_m != 0 ||
      k.block_n % k.warp_n != 0)
    return "warp_m and warp_n have to be multiples of 16 that divide block_m and block_n";
  if (k.threads() > 1024)
    return "has " + std::to_string(k.threads()) +
           " threads, the limit is 1024: make the warp tile larger";
  if (k.family < Family::sm80 && k.num_stages > 2)
    return std::string("family ") + name(k.family) + " has no cp.async: num_stages is 1 or 2";
  return {};
}

}  // namespace

std::string check(const KernelConfig& k, const HardwareSpec& hw) {
  std::string why = refuse_instructions(k, hw.arch);
  if (why.empty())
    why = k.family == Family::sm90   ? refuse_shape_sm90(k)
          : k.family == Family::gemv ? refuse_shape_gemv(k, hw.arch)
                                     : refuse_shape(k);
  if (why.empty()) why = refuse_shift(k);
  if (why.empty() && k.family != Family::sm90 && k.swizzle_bytes != 128)
    why = std::string("swizzle_bytes is a knob of family sm90: family ") + name(k.family) +
          " keeps to 128";
  if (why.empty() && (k.num_stages < 1 || k.num_stages > 32)) why = "num_stages has to be 1..32";
  if (why.empty() && (k.split_k < 1 || k.split_k > 1024))
    why = "split_k has to be 1..1024 (1: off)";
  if (why.empty() && (k.raster_group < 0 || k.raster_group > 1024))
    why = "raster_group has to be 0..1024 (0: off)";
  if (!why.empty()) return why;

  const int shared = shared_bytes(k);
  if (shared > hw.arch.shared_per_block)
    return need("shared memory", shared, "bytes", hw.arch.shared_per_block) + " per CTA on " +
           arch_name(hw.arch.cc) + ": fewer num_stages, or a smaller block_m, block_n or block_k";
  const int registers = estimated_registers(k);
  if (registers > register_limit(k, hw))
    return need("registers", registers, "(estimated)", register_limit(k, hw)) +
           " per thread, it would spill: make the warp tile smaller";
  if (k.family != Family::sm90 && registers * k.threads() > hw.arch.registers_per_sm)
    return need("registers", registers * k.threads(), "(estimated)", hw.arch.registers_per_sm) +
           " per SM: make the block tile smaller";
  if (ctas_per_sm(k, hw) < 1) return "does not fit on an SM of " + arch_name(hw.arch.cc);
  return {};
}

}  // namespace fastgemm

// What the planner knows of a GPU: its architecture's row of the parameter table, and one card.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "fastgemm/export.hpp"

namespace fastgemm {

// One architecture: what every card of this compute capability has in common.
struct ArchSpec {
  int cc;                    // compute capability, 10 * major + minor: 80 is sm_80
  const char* generation;    // "Ampere"
  int shared_per_sm;         // bytes of shared memory an SM has for its CTAs
  int shared_per_block;      // bytes that one CTA can opt in to
  int shared_reserved;       // bytes the driver takes of shared_per_sm for every resident CTA
  int registers_per_sm;      // 32-bit registers
  int registers_per_thread;  // most that one thread can have
  int warps_per_sm;          // resident warps
  int ctas_per_sm;           // resident CTAs
  int mma_flops_per_clock;   // dense fp16/bf16 with fp32 accumulators, per SM; a multiply-add is 2
  double clock_ghz;          // boost clock of the architecture's typical card
  bool bf16, ldmatrix, cp_async, mma_m16n8k16, tma_wgmma;
  double mma_sync_share;  // of mma_flops_per_clock, what mma.sync reaches (newer units need wgmma,
                          // tcgen05)
};

// One GPU: its architecture's row and what differs from card to card. A live device fills these
// fields with what the driver says of it.
struct HardwareSpec {
  ArchSpec arch;
  std::string name;  // "NVIDIA H200"; the row's own name where the card is not known
  int sms;           // streaming multiprocessors
  double clock_ghz;  // boost clock
  std::int64_t l2_bytes;
  double dram_gbps;  // 10^9 bytes per second
  int device = -1;   // ordinal of a live device, -1 for a row of the table
};

FASTGEMM_API const std::vector<ArchSpec>& arch_table();
FASTGEMM_API const std::vector<HardwareSpec>& card_table();

// The row for "sm_90", "90", "9.0", "sm_90a" or a card: "H100", "RTX 4090". Throws InvalidValue
// with what is known.
FASTGEMM_API HardwareSpec hardware(std::string_view arch_or_card);

// The row of a compute capability; the nearest older one of the same kernel family where it has no
// row itself.
FASTGEMM_API const ArchSpec& arch_for(int cc);

FASTGEMM_API std::string arch_name(int cc);  // 80 -> "sm_80"

}  // namespace fastgemm

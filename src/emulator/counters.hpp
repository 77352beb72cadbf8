// What the report counts: instructions, bank conflicts, bytes.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "fastgemm/emulate.hpp"

namespace fastgemm::emulated {

enum class Op {
  ldmatrix,
  stmatrix,
  ld_shared,
  st_shared,
  st_async,
  cp_async,
  ld_global,
  st_global,
  mma,
  wgmma,
  tma_load,
  tma_store,
  bar_sync,
  mbarrier_wait,
  count
};

struct Counts {
  std::int64_t executed = 0, shared_bytes = 0, wavefronts = 0, ideal_wavefronts = 0;
  std::int64_t global_bytes = 0, sectors = 0;
};

class Counters {
 public:
  Counts& operator[](Op op) { return counts_[static_cast<std::size_t>(op)]; }
  void add(const Counters& other);
  std::vector<InstructionCounts> table() const;

 private:
  std::array<Counts, static_cast<std::size_t>(Op::count)> counts_{};
};

// The passes that shared memory makes for one warp instruction: lanes of each pass's share of
// `bytes` a lane are served together where they touch different banks or the same words.
int wavefronts(const std::uint32_t* addresses, int lanes, int bytes);
int ideal_wavefronts(int lanes, int bytes);

// Wavefronts of what no lanes do is a model, real hardware may differ. WGMMA reads each operand
// once an instruction, a core matrix (8 rows of 16 bytes) a pass; the TMA writes or reads a row of
// its box a pass, up to 128 bytes of it. In both, chunks that share a bank take a pass each.

// The distinct 32-byte sectors among accesses of `bytes` each.
int sectors(const std::uint64_t* addresses, int lanes, int bytes);

// Puts together what the lanes of a warp execute one after the other: the n-th access of one kind
// and width of every lane is one warp instruction.
class WarpAccesses {
 public:
  void add(Counters& counters, Op op, int lane, std::uint32_t shared, std::uint64_t global,
           int bytes, int global_bytes);
  void flush(Counters& counters);  // at points where the lanes meet

 private:
  struct Instruction {
    std::uint32_t lanes = 0;
    int bytes = 0, global_bytes = 0;
    std::uint32_t shared[32];
    std::uint64_t global[32];
  };
  struct Stream {
    std::deque<Instruction> open;
    std::uint32_t first = 0;  // number of the first open one
    std::array<std::uint32_t, 32> next{};
  };
  static void count(Counters& counters, Op op, const Instruction& instruction);
  std::array<std::array<Stream, 4>, static_cast<std::size_t>(Op::mma)> streams_;  // by width
  bool any_ = false;
};

}  // namespace fastgemm::emulated

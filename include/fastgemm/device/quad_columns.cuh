// Columns of a row as accumulators have them, moved between registers and memory in whole sectors.
#pragma once

#include "fastgemm/device/epilogue_operands.cuh"
#include "fastgemm/device/ptx/shuffle.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// The columns that a lane's accumulators have of 32: two of every eight, and the three lanes beside
// it the others. Accesses of a pair would be of half a sector; so the four lanes move the eight
// columns of one place each, 16 or 32 bytes, and exchange them. All 32 lanes take part.
//
//   columns         0 1   2 3   4 5   6 7 |  8 9   ..  14 15 | 16 ..  | ..  30 31
//   held by lane     0     1     2     3  |   0    ..    3   |  0 ..  | ..    3
//   moved by lane    0 ................ 0 |   1 ........ 1   |  2 ..  | ..    3
struct QuadColumns {
  static constexpr int COUNT = 8;
  FASTGEMM_DEVICE static int lane() { return ptx::thread_index() % 4; }
  FASTGEMM_DEVICE static int at(int i) { return i / 2 * 8 + lane() * 2 + i % 2; }

  template <int WORDS>
  FASTGEMM_DEVICE static void load(u32 (&words)[WORDS], const void* p, int valid) {
    const int first = 8 * lane() < valid ? 8 * lane() : 0;
    Neighbours<8>::load(words, static_cast<const u8*>(p) + first * (WORDS / 2), valid);
    transpose(words);
  }
  // L1 has these: they are not worth the exchange.
  template <int WORDS>
  FASTGEMM_DEVICE static void load_repeated(u32 (&words)[WORDS], const void* p, int valid) {
    constexpr int OF_PAIR = WORDS / 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int first = at(2 * i) < valid ? at(2 * i) : 0;
      u32 pair[OF_PAIR];
      Neighbours<2>::load(pair, static_cast<const u8*>(p) + first * (WORDS / 2), valid);
#pragma unroll
      for (int w = 0; w < OF_PAIR; ++w) words[i * OF_PAIR + w] = pair[w];
    }
  }

  template <int WORDS>
  FASTGEMM_DEVICE static void store(void* p, u32 (&words)[WORDS], int valid) {
    transpose(words);
    Neighbours<8>::store(static_cast<u8*>(p) + 8 * lane() * (WORDS / 2), words, valid - 8 * lane());
  }

 private:
  // Part i of lane j, a pair of elements, becomes part j of lane i.
  template <int WORDS>
  FASTGEMM_DEVICE static void transpose(u32 (&words)[WORDS]) {
    constexpr int OF_PART = WORDS / 4;
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2) {
      const bool upper = (lane() & bit) != 0;
#pragma unroll
      for (int i = 0; i < WORDS; ++i) {
        if (i / OF_PART & bit) continue;
        u32 &low = words[i], &high = words[i + bit * OF_PART];
        const u32 received = ptx::shfl_bfly(upper ? low : high, bit);
        if (upper)
          low = received;
        else
          high = received;
      }
    }
  }
};

}  // namespace fastgemm

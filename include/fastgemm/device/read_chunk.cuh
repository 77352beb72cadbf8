// Reads eight elements from any address, in two steps, so that many reads are under way at once.
#pragma once

#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shift.cuh"
#include "fastgemm/device/shifted_rows.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// Elements first .. end - 1 of the eight at source[i * stride], and zeros in place of the others.
// Each comes in at the upper end, and moves those before it down: slow, but it takes few registers.
FASTGEMM_DEVICE Chunk read_one_by_one(const u16* source, i64 stride, int first, int end) {
  Chunk chunk = {{0, 0, 0, 0}};
#pragma unroll 1
  for (int i = 0; i < CHUNK_ELEMENTS; ++i) {
    const u32 bits = i >= first && i < end ? ptx::ld_global(source + i * stride) : 0;
#pragma unroll
    for (int w = 0; w < 3; ++w) chunk.word[w] = ptx::shf_r(chunk.word[w], chunk.word[w + 1], 16);
    chunk.word[3] = ptx::shf_r(chunk.word[3], bits, 16);
  }
  return chunk;
}

// ALIGNED: the chunk begins at a 16-byte boundary and is read once, past L1. Otherwise it is cut
// out of one or two aligned reads, which neighbours share through L1:
//
//   wanted       | chunk 0       | chunk 1       | ...     begins anywhere
//   read      |               |               |            16 bytes each
//
// A read never brings only what is not wanted, and nothing from outside of the elements that
// start() is told of: where it would, and where elements do not lie side by side, they are read one
// by one, in finish().
template <bool ALIGNED>
class ChunkRead;

template <>
class ChunkRead<true> {
 public:
  // Whole chunks only: with `valid` below eight it is as if none of it existed.
  FASTGEMM_DEVICE void start(const u16* source, i64, int valid, int, int) {
#pragma unroll
    for (int i = 0; i < 4; ++i) chunk_.word[i] = 0;
    if (valid >= CHUNK_ELEMENTS) ptx::ld_global_once(chunk_.word, source);
  }
  FASTGEMM_DEVICE const Chunk& finish() const { return chunk_; }

 private:
  Chunk chunk_;
};

template <>
class ChunkRead<false> {
 public:
  // The first `valid` of the elements at source[i * stride] exist. With stride 1 there are `before`
  // elements before them that may be read as well, and `after` from the first one on.
  FASTGEMM_DEVICE void start(const u16* source, i64 stride, int valid, int before, int after) {
    source_ = source;
    stride_ = stride;
    valid_ = min_of(valid, CHUNK_ELEMENTS);
    const int offset = shift_of(source);
    const bool two = offset + valid_ > CHUNK_ELEMENTS;
    wide_ = stride == 1 && valid_ > 0 && before >= offset &&
            (two ? 2 : 1) * CHUNK_ELEMENTS - offset <= after;
    if (wide_) ptx::ld_global_words<4>(low_.word, source - offset);
    if (wide_ && two) ptx::ld_global_words<4>(high_.word, source - offset + CHUNK_ELEMENTS);
  }

  // The elements, and zeros in place of those that do not exist.
  FASTGEMM_DEVICE Chunk finish() {
    if (!wide_) return read_one_by_one(source_, stride_, 0, valid_);
    Chunk chunk = cut_out(low_, high_, shift_of(source_));
    if (valid_ < CHUNK_ELEMENTS)
#pragma unroll
      for (int i = 0; i < 4; ++i)
        chunk.word[i] &= valid_ <= 2 * i ? 0u : valid_ == 2 * i + 1 ? 0xffffu : 0xffffffffu;
    return chunk;
  }

 private:
  Chunk low_, high_;
  const u16* source_;
  i64 stride_;
  int valid_;
  bool wide_;
};

}  // namespace fastgemm

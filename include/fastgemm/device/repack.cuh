// The kernel before the main one, where an operand lies awkwardly: copies it into aligned rows.
#pragma once

#include "fastgemm/device/load_tile.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/shift.cuh"
#include "fastgemm/device/ptx/thread.cuh"

namespace fastgemm {

// 32 bytes from a 16-byte boundary on, which cover any 16 bytes that begin in their first half.
struct Span32 {
  u32 word[8];
};

// The 16 bytes from byte `offset` (even) on: words move down by four, two and one half words, as
// the bits of the offset say.
FASTGEMM_DEVICE Chunk cut(Span32 s, u32 offset) {
  if (offset & 8)
#pragma unroll
    for (int i = 0; i < 6; ++i) s.word[i] = s.word[i + 2];
  if (offset & 4)
#pragma unroll
    for (int i = 0; i < 5; ++i) s.word[i] = s.word[i + 1];
  Chunk chunk;
#pragma unroll
  for (int i = 0; i < 4; ++i) chunk.word[i] = ptx::shf_r(s.word[i], s.word[i + 1], offset % 4 * 8);
  return chunk;
}

// Copies up to REPACK_CHUNKS chunks of a row a thread. 2^lane_bits neighbouring threads (a warp
// where rows are long) take a segment of a row in turns, so that they write, and where the source
// has a unit stride read, neighbouring bytes:
//
//   copy      | chunk 0       | chunk 1       | ...        16-byte aligned
//   source       | chunk 0       | chunk 1       | ...     begins anywhere
//   reads     |       |       |       |       |            aligned, two a chunk, shared through L1
//
// Every read holds elements that are wanted, and nothing that lies before or behind the operand:
// the chunks at its ends, and all where no stride is 1, are read element by element. What follows a
// row's last element in the copy is never read.
template <bool DEPENDENT_LAUNCH>
FASTGEMM_DEVICE void repack(const RepackParams& p) {
  // The main kernel's CTAs wait for the copy, but need not be launched behind it.
  if constexpr (DEPENDENT_LAUNCH) {
    ptx::griddepcontrol_launch_dependents();
    ptx::griddepcontrol_wait();
  }
  const bool second = ptx::block_index() >= p.operand[0].ctas;
  const RepackOperand& o = p.operand[second];
  const u32 cta = ptx::block_index() - (second ? p.operand[0].ctas : 0);
  const u32 matrix = cta / o.ctas_of_matrix;
  const u32 team = (cta - matrix * o.ctas_of_matrix) * (REPACK_THREADS >> o.lane_bits) +
                   (ptx::thread_index() >> o.lane_bits);
  const u32 lanes = 1u << o.lane_bits, lane = ptx::thread_index() & (lanes - 1);
  const i64 row = team / o.segments_of_row;
  if (row >= o.rows) return;
  const i64 col = (i64(team % o.segments_of_row) * (lanes * REPACK_CHUNKS) + lane) * CHUNK_ELEMENTS;
  const u16* source = static_cast<const u16*>(o.source) + matrix * o.batch_stride +
                      row * o.row_stride + col * o.col_stride;
  u16* copy = static_cast<u16*>(o.copy) + matrix * o.copy_batch_stride + row * o.copy_pitch + col;

  // This thread's chunk i lies i * step elements further on, of which `left` exist.
  const int step = lanes * CHUNK_ELEMENTS;
  const int left = static_cast<int>(min_of<i64>(o.cols - col, 1 << 30));
  const u64 address = reinterpret_cast<u64>(source);
  const u32 offset = static_cast<u32>(address % CHUNK_BYTES);
  const u64 aligned = address - offset;
  const int room = static_cast<int>(min_of<i64>(o.source_end - aligned, 1 << 30));

  // All reads first, so that they are under way together.
  Span32 span[REPACK_CHUNKS];
  bool wide[REPACK_CHUNKS];
#pragma unroll
  for (int i = 0; i < REPACK_CHUNKS; ++i) {
    const int valid = min_of(left - i * step, CHUNK_ELEMENTS);
    const bool two = static_cast<int>(offset) + 2 * valid > CHUNK_BYTES;
    wide[i] = o.col_stride == 1 && valid > 0 && (i > 0 || aligned >= o.source_begin) &&
              2 * i * step + (two ? 2 * CHUNK_BYTES : CHUNK_BYTES) <= room;
    const u32* words = reinterpret_cast<const u32*>(aligned + 2 * i * step);
    if (wide[i]) ptx::ld_global_words<4>(span[i].word, words);
    if (wide[i] && two) ptx::ld_global_words<4>(span[i].word + 4, words + 4);
  }
#pragma unroll
  for (int i = 0; i < REPACK_CHUNKS; ++i) {
    const int valid = min_of(left - i * step, CHUNK_ELEMENTS);
    if (valid <= 0) return;
    const Chunk chunk = wide[i]
                            ? cut(span[i], offset)
                            : load_chunk<2>(source + i * step * o.col_stride, o.col_stride, valid);
    ptx::st_global_words<4>(copy + i * step, chunk.word);
  }
}

}  // namespace fastgemm

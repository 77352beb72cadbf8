// The kernel before the main one, where an operand lies awkwardly: copies it into aligned rows.
#pragma once

#include "fastgemm/device/load_tile.cuh"
#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/dependent_launch.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/ptx/thread.cuh"
#include "fastgemm/device/read_chunk.cuh"

namespace fastgemm {

FASTGEMM_DEVICE int clamped(i64 count) { return static_cast<int>(min_of<i64>(count, 1 << 30)); }

// Copies up to REPACK_CHUNKS chunks of a row a thread. 2^lane_bits neighbouring threads (a warp
// where rows are long) take a segment of a row in turns, so that they write, and where the source
// has a unit stride read, neighbouring bytes. Nothing is read from outside of the operand.
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

  // This thread's chunk i lies i * step elements further on. The operand has `before` elements (or
  // gaps) before its chunk 0, and `after` from there on; `left` of them are in this row.
  const int step = lanes * CHUNK_ELEMENTS;
  const int left = clamped(o.cols - col);
  const u64 address = reinterpret_cast<u64>(source);
  const int before = clamped(i64(address - o.source_begin) / 2);
  const int after = clamped(i64(o.source_end - address) / 2);

  // Elements that do not lie side by side are read one by one.
  if (o.col_stride != 1) {
#pragma unroll 1
    for (int i = 0; i < REPACK_CHUNKS && left > i * step; ++i) {
      const Chunk chunk =
          load_chunk<2>(source + i * step * o.col_stride, o.col_stride, left - i * step);
      ptx::st_global_words<4>(copy + i * step, chunk.word);
    }
    return;
  }

  ChunkRead<false> read[REPACK_CHUNKS];
#pragma unroll
  for (int i = 0; i < REPACK_CHUNKS; ++i)
    read[i].start(source + i * step, 1, left - i * step, before + i * step, after - i * step);
#pragma unroll
  for (int i = 0; i < REPACK_CHUNKS; ++i) {
    if (left <= i * step) return;
    ptx::st_global_words<4>(copy + i * step, read[i].finish().word);
  }
}

}  // namespace fastgemm

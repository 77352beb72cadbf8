// The kernel's arguments. Read by host code too (src/launch.cpp fills it), so it is plain C++.
#pragma once

namespace fastgemm {

// Extents and strides are 64-bit and count elements; D[batch, m, n] = alpha * A * B + beta * C.
struct GemmParams {
  const void* a;
  const void* b;
  const void* c;
  void* d;
  long long m, n, k, batch;
  long long a_m_stride, a_k_stride, a_batch_stride;
  long long b_n_stride, b_k_stride, b_batch_stride;
  long long c_m_stride, c_n_stride, c_batch_stride;
  long long d_m_stride, d_n_stride, d_batch_stride;
  unsigned int splits;            // of K: 1 is off
  unsigned int k_tiles_of_split;  // k-tiles of each split but the last
  unsigned int tiles_m, tiles_n;  // block tiles of one matrix of the batch
  float alpha, beta;
};

// An array that the epilogue reads or, where the expression keeps something, writes; strides count
// elements.
struct EpilogueOperand {
  const void* data;
  long long batch_stride, m_stride, n_stride;
};

constexpr int EPILOGUE_ARRAYS = 8, EPILOGUE_NUMBERS = 8;  // at most

// What the epilogue of a kernel is given: no pointer and no number is compiled in.
struct EpilogueParams {
  EpilogueOperand array[EPILOGUE_ARRAYS];
  float number[EPILOGUE_NUMBERS];
  // Of a gated epilogue: column j of D is made of columns j * gate_step, the gate, and gate_offset
  // behind it, the up.
  long long gate_step, gate_offset;
};

// The arguments of a kernel with an epilogue.
struct FusedParams : GemmParams {
  EpilogueParams epilogue;
};

// The sums that a split K leaves, as the kernel that adds them up sees them (reduce_splits.cuh):
// `splits` float32 matrices, one behind the other, for each of the batch. Strides count elements.
struct PartialSums {
  const float* data;
  long long m_stride, matrix_stride;
  unsigned int splits;
  unsigned int lane_bits;  // 2^lane_bits threads share the splits of the same elements
};

// Threads of a CTA of that kernel.
constexpr int REDUCE_THREADS = 256;

// One operand as the kernel that repacks sees it (repack.cuh): matrices of rows x cols elements of
// 16 bits, columns being the contiguous index of the copy. Strides and pitch count elements.
struct RepackOperand {
  const void* source;
  void* copy;
  unsigned long long source_begin, source_end;  // addresses of the bytes that the source spans
  long long rows, cols;
  long long row_stride, col_stride, batch_stride;  // of the source
  long long copy_pitch, copy_batch_stride;
  // 2^lane_bits threads copy a segment of a row: REPACK_CHUNKS chunks each.
  unsigned int lane_bits, segments_of_row;
  unsigned int ctas_of_matrix, ctas;
};

// The CTAs of operand 0 come first; an operand that stays as it is has none.
struct RepackParams {
  RepackOperand operand[2];
};

// Threads of a CTA of that kernel, and 16-byte chunks that each of them copies.
constexpr int REPACK_THREADS = 256;
constexpr int REPACK_CHUNKS = 4;

}  // namespace fastgemm

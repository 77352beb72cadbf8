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
};

// The arguments of a kernel with an epilogue.
struct FusedParams : GemmParams {
  EpilogueParams epilogue;
};

// Threads of a CTA of the kernel that adds up splits (reduce_splits.cuh).
constexpr int REDUCE_THREADS = 256;

}  // namespace fastgemm

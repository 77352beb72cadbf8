// A and B in global memory: where their elements lie.
#pragma once

#include "fastgemm/device/params.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// "Outer" is m of A and n of B.
struct OperandView {
  const void* data;
  i64 outer, outer_stride, k, k_stride, batch, batch_stride;

  FASTGEMM_DEVICE const u16* at(i64 batch_index, i64 outer_index, i64 k_index) const {
    return static_cast<const u16*>(data) + batch_index * batch_stride + outer_index * outer_stride +
           k_index * k_stride;
  }
  // The lowest of its addresses: strides may be negative.
  FASTGEMM_DEVICE const u16* lowest() const {
    return static_cast<const u16*>(data) + min_of<i64>(0, (outer - 1) * outer_stride) +
           min_of<i64>(0, (k - 1) * k_stride) + min_of<i64>(0, (batch - 1) * batch_stride);
  }
};

FASTGEMM_DEVICE OperandView operand_a(const GemmParams& p) {
  return {p.a, p.m, p.a_m_stride, p.k, p.a_k_stride, p.batch, p.a_batch_stride};
}
FASTGEMM_DEVICE OperandView operand_b(const GemmParams& p) {
  return {p.b, p.n, p.b_n_stride, p.k, p.b_k_stride, p.batch, p.b_batch_stride};
}

}  // namespace fastgemm

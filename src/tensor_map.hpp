// Tensor maps: how the TMA is told where an operand lies and which box of it to copy.
#pragma once

#include <cstdint>

#include "fastgemm/plan.hpp"
#include "fastgemm/problem.hpp"
#include "planner.hpp"

namespace fastgemm {

// As the driver encodes it; device code has the same under the same name (device/ptx/tma.cuh).
struct alignas(128) TensorMap {
  std::uint64_t opaque[16];
};

// What a map is encoded from. Index 0 is the contiguous one, 1 the other, 3 the batch. Where a
// k-tile is deeper than a swizzle atom, the contiguous k is split into its rows: of the 128-byte
// swizzle, index 0 is k % 64, index 2 is k / 64. Where the operand's columns are gated, index 1 is
// the column % 8, index 2 says gate or up, and index 3 counts eights of both.
struct TensorBox {
  void* data;
  std::int64_t extent[4];
  std::int64_t stride_bytes[3];  // of indices 1 to 3
  std::int64_t box[4];           // extents of one copy
  int pitch;                     // elements of a row of the copy in shared memory; 8: no swizzle
  DType dtype;

  bool operator==(const TensorBox& o) const;
};

// Of an operand: the boxes of whole tiles, and of tiles at its edge, which have the rows that exist
// (the same where there is no such tile).
struct OperandBoxes {
  TensorBox whole, edge;
};

OperandBoxes tensor_boxes_a(const GemmProblem& problem, const KernelConfig& kernel);
OperandBoxes tensor_boxes_b(const GemmProblem& problem, const KernelConfig& kernel);
TensorBox tensor_box_d(const GemmProblem& problem, const KernelConfig& kernel);

// Why the TMA cannot read A and B of a canonical problem with these traits; nullptr when it can. Of
// an operand whose rows are shifted, it need not.
const char* refuse_tma(const GemmProblem& problem, const ProblemTraits& traits,
                       bool shifts_a = false, bool shifts_b = false);
// The same for writing D.
const char* refuse_tma_stores(const GemmProblem& problem);

// The encoded map. Each thread keeps those it used last, so that a repeated call does not encode
// again.
const TensorMap& tensor_map(const TensorBox& box);

// Device code has the same under the same name (device/mainloop_sm90.cuh).
struct OperandMaps {
  TensorMap whole, edge;
};
OperandMaps operand_maps(const OperandBoxes& boxes);

}  // namespace fastgemm

// What planning, launching and code generation ask of a problem's fused epilogue.
#pragma once

#include <cstdint>
#include <string>

#include "fastgemm/plan.hpp"
#include "fastgemm/problem.hpp"

namespace fastgemm {

// Array i as the problem lies: with rows and columns exchanged where the problem was transposed.
MatrixView fused_array(const GemmProblem& problem, std::size_t i);

// The kind of array i as the kernel sees it.
ArrayKind fused_kind(const Epilogue& epilogue, std::size_t i, bool transposed);

// How the kernel reads the arrays: for each its dtype, and whether 16 bytes at once.
struct FusedAccess {
  DType dtype;
  bool wide;
};
std::uint32_t fused_access(const GemmProblem& problem);
FusedAccess access_of(std::uint32_t accesses, std::size_t i);

// Of the epilogue, its access and orientation; 0 without one.
std::uint64_t fused_id(const GemmProblem& problem);

// The same in both orientations, since a kernel may swap the operands: what is read one by one in
// one of them can be wide in the other.
std::uint64_t fused_ids(const GemmProblem& problem);

// Refuses arrays and numbers that do not fit the expression. Throws InvalidValue, InvalidType.
void check_fusion(const GemmProblem& problem);

// Where a gated epilogue's columns lie in the product: column j of D is made of column j * step and
// the one `offset` behind it.
struct GateColumns {
  std::int64_t step, offset;
};
GateColumns gate_columns(const GemmProblem& problem);

// Why the TMA cannot bring the columns of a gated epilogue together, so that a second kernel has
// to; nullptr when it can.
const char* refuse_gated_tiles(const GemmProblem& problem);

// Its struct in the kernel's source.
std::string epilogue_source(const KernelConfig& kernel);

const char* device_type(DType dtype);  // "Bfloat16"

}  // namespace fastgemm

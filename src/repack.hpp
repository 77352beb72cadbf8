// Repacking: operands that lie awkwardly are copied into aligned rows before they are multiplied.
#pragma once

#include <cstddef>

#include "fastgemm/device/params.cuh"
#include "planner.hpp"

namespace fastgemm {

Runs runs_of(const MatrixView& v, Major major, std::int64_t outer_stride, std::int64_t k_stride);

// Which of a problem's operands the main kernel finds as copies.
struct Repack {
  bool a = false, b = false;

  bool any() const { return a || b; }
  bool operator==(const Repack& o) const { return a == o.a && b == o.b; }
};
inline Repack repack_of(const KernelConfig& k) { return {k.repack_a, k.repack_b}; }

// The choices worth considering for a canonical problem: none; the shorter operand alone, where the
// longer one can be shifted; the operands that 16-byte reads or the TMA cannot take; and those
// whose rows do not begin with a line of 128 bytes. A fixed wish holds in all of them.
std::vector<Repack> repack_choices(const GemmProblem& problem, const ArchSpec& arch,
                                   const GemmConfig& wish);

// Why these operands should not be copied, in words; nullptr where nothing speaks against it.
const char* refuse_repack(const GemmProblem& problem, Repack which, const GemmConfig& wish);

// Bytes of the copies, A's before B's.
std::size_t repack_bytes(const GemmProblem& problem, Repack which);

// The problem as the main kernel finds it, with the copies at `workspace`: the same contiguous
// indices, in rows of whole 128-byte lines.
GemmProblem repacked(const GemmProblem& problem, Repack which, void* workspace = nullptr);

// The arguments of the kernel that makes the copies, for a repacked problem.
RepackParams repack_params(const GemmProblem& problem, const GemmProblem& repacked, Repack which);

// Predicted microseconds of that kernel with its launch and the workspace's allocation.
double repack_us(const GemmProblem& problem, Repack which, const HardwareSpec& hardware);

}  // namespace fastgemm

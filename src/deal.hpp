// Dealing out rows: an operand whose rows the TMA cannot take as they lie, seen as eight matrices
// whose rows it can (device/mainloop_sm90.cuh, DealtMaps).
#pragma once

#include <cstdint>

#include "planner.hpp"

namespace fastgemm {

constexpr int dealt_matrices = 8;

// A matrix of the eight, of which each has every eighth row of the view.
MatrixView deal(MatrixView view);

// Why rows of A cannot be dealt out, in words; nullptr where they can. `problem`: in the kernel's
// orientation.
const char* refuse_deal(const GemmProblem& problem);

// Matrix s of the batch has rows s, s + 8, s + 16 ... of A and D, and all of B. Where m is not a
// multiple of eight, the last matrices have one row less than this says, see whole_matrices().
GemmProblem dealt(const GemmProblem& problem);

// What the kernel of a dealt problem may rely on.
ProblemTraits dealt_traits(const GemmProblem& dealt);

// How many of the matrices have as many rows as the first, where they are not all alike: GemmParams
// counts with that.
std::uint32_t whole_matrices(std::int64_t rows_of_all);

}  // namespace fastgemm

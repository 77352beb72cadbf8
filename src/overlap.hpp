// Whether strided views share memory: the integer arithmetic behind validate().
#pragma once

#include <array>
#include <cstdint>

#include "fastgemm/problem.hpp"

namespace fastgemm {

__extension__ using Int128 = __int128;

// The most that batch, m, n and k can be: products of three of them and an element's size stay far
// below 2^127.
constexpr std::int64_t kMostSteps = std::int64_t{1} << 40;

// One index of a view: `extent` steps of `stride`.
struct Axis {
  std::int64_t stride;
  std::int64_t extent;
};
using Axes = std::array<Axis, 3>;

// The first and one past the last unit that a view touches, relative to its base.
struct Span {
  Int128 begin, end;
};

// Batch, rows and columns of `view`, in elements; indices with one step have stride 0.
Axes axes_of(const MatrixView& view, std::int64_t batch, std::int64_t rows, std::int64_t cols);

// In elements. All extents must be positive.
Span span_of(const Axes& axes);

// Whether two different indices lead to the same element. Exact; `undecided` (then true) stands for
// a view whose smallest extent is too large to try every difference of it.
bool overlaps_itself(const Axes& axes, bool* undecided = nullptr);

// Whether two views (axes in elements, bases in bytes) are shown to be disjoint: by their ranges,
// or because they lie in different columns, rows or matrices of one pitch. False means that they
// share memory or that no such argument applies.
bool proved_disjoint(const Axes& a, std::int64_t a_base, int a_size, const Axes& b,
                     std::int64_t b_base, int b_size);

}  // namespace fastgemm

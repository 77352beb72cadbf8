// Whether strided views share memory: the integer arithmetic behind validate().
#include "overlap.hpp"

#include <algorithm>
#include <utility>

namespace fastgemm {
namespace {

constexpr std::int64_t kMostDifferencesTried = std::int64_t{1} << 16;

Int128 magnitude(Int128 x) { return x < 0 ? -x : x; }

Int128 gcd(Int128 a, Int128 b) {
  for (a = magnitude(a), b = magnitude(b); b != 0;) {
    const Int128 rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Int128 floor_div(Int128 a, Int128 b) {
  const Int128 q = a / b;
  return q * b != a && (a < 0) != (b < 0) ? q - 1 : q;
}

// x with a * x = 1 modulo m, for coprime a and m.
Int128 inverse(Int128 a, Int128 m) {
  Int128 r0 = m, r1 = ((a % m) + m) % m, x0 = 0, x1 = 1;
  while (r1 != 0) {
    const Int128 q = r0 / r1;
    const Int128 r2 = r0 - q * r1, x2 = x0 - q * x1;
    r0 = r1, r1 = r2, x0 = x1, x1 = x2;
  }
  return ((x0 % m) + m) % m;
}

// Whether a * y + b * z = c for some |y| <= y_max, |z| <= z_max; a and b positive.
bool solvable(Int128 a, Int128 y_max, Int128 b, Int128 z_max, Int128 c) {
  const Int128 g = gcd(a, b);
  if (c % g != 0) return false;
  a /= g, b /= g, c /= g;
  const Int128 low = std::max(-y_max, -floor_div(b * z_max - c, a));
  const Int128 high = std::min(y_max, floor_div(c + b * z_max, a));
  const Int128 residue = ((c % b + b) % b) * inverse(a, b) % b;  // y modulo b
  const Int128 first = low + ((residue - low) % b + b) % b;
  return first <= high;
}

// By insertion: there are three at most.
template <class Less>
void sort(Axes& axes, int n, Less less) {
  for (int i = 1; i < n; ++i)
    for (int j = i; j > 0 && less(axes[j], axes[j - 1]); --j) std::swap(axes[j], axes[j - 1]);
}

// The axes of more than one step, the smallest stride first.
int sorted(const Axes& axes, Axes& out) {
  int n = 0;
  for (const Axis& axis : axes)
    if (axis.extent > 1) out[n++] = {axis.stride < 0 ? -axis.stride : axis.stride, axis.extent};
  sort(out, n, [](const Axis& x, const Axis& y) { return x.stride < y.stride; });
  return n;
}

// A view seen as a run of bytes that is repeated at multiples of a period (0: never).
struct Repetition {
  Int128 run, period;
};

// The ways to see it so: the smallest strides, none to all of them, stay within the run. Returns
// how many.
int repetitions(const Axes& axes, int size, Repetition* out) {
  Axes by_stride;
  const int n = sorted(axes, by_stride);
  for (int inner = 0; inner <= n; ++inner) {
    out[inner] = {size, 0};
    for (int i = 0; i < n; ++i) {
      const Int128 stride = Int128{by_stride[i].stride} * size;
      if (i < inner)
        out[inner].run += stride * (by_stride[i].extent - 1);
      else
        out[inner].period = gcd(out[inner].period, stride);
    }
  }
  return n + 1;
}

}  // namespace

Axes axes_of(const MatrixView& view, std::int64_t batch, std::int64_t rows, std::int64_t cols) {
  return {{{batch > 1 ? view.batch_stride : 0, batch},
           {rows > 1 ? view.row_stride : 0, rows},
           {cols > 1 ? view.col_stride : 0, cols}}};
}

Span span_of(const Axes& axes) {
  Span span{0, 1};
  for (const Axis& axis : axes) {
    const Int128 reach = Int128{axis.stride} * (axis.extent - 1);
    (reach < 0 ? span.begin : span.end) += reach;
  }
  return span;
}

bool overlaps_itself(const Axes& axes, bool* undecided) {
  Axes by_stride;
  const int n = sorted(axes, by_stride);
  Int128 reach = 0;
  bool nested = true;
  for (int i = 0; i < n; ++i) {
    nested = nested && by_stride[i].stride > reach;
    reach += Int128{by_stride[i].stride} * (by_stride[i].extent - 1);
  }
  if (nested) return false;
  if (n > 0 && by_stride[0].stride == 0) return true;

  // Two indices meet where the differences of their steps solve sum(difference * stride) = 0.
  Axes& by_extent = by_stride;
  sort(by_extent, n, [](const Axis& x, const Axis& y) { return x.extent > y.extent; });
  const Axis y = by_extent[0], z = by_extent[1];
  const Int128 g = gcd(y.stride, z.stride);
  if (z.stride / g < y.extent && y.stride / g < z.extent) return true;
  if (n < 3) return false;
  const Axis x = by_extent[2];
  if (x.extent > kMostDifferencesTried) {
    if (undecided != nullptr) *undecided = true;
    return true;
  }
  for (std::int64_t difference = 1; difference < x.extent; ++difference)
    if (solvable(y.stride, y.extent - 1, z.stride, z.extent - 1, Int128{x.stride} * difference))
      return true;
  return false;
}

bool proved_disjoint(const Axes& a, std::int64_t a_base, int a_size, const Axes& b,
                     std::int64_t b_base, int b_size) {
  const Span a_span = span_of(a), b_span = span_of(b);
  const Int128 a_first = a_base + a_span.begin * a_size, b_first = b_base + b_span.begin * b_size;
  const Int128 ahead = b_first - a_first;  // from a's first byte up to b's
  if (ahead >= (a_span.end - a_span.begin) * a_size) return true;
  if (-ahead >= (b_span.end - b_span.begin) * b_size) return true;

  // Two views are disjoint if their runs are, modulo the gcd of the strides that repeat the runs.
  Repetition a_runs[4], b_runs[4];
  const int a_ways = repetitions(a, a_size, a_runs), b_ways = repetitions(b, b_size, b_runs);
  for (int i = 0; i < a_ways; ++i) {
    for (int j = 0; j < b_ways; ++j) {
      const Int128 period = gcd(a_runs[i].period, b_runs[j].period);
      if (period == 0) continue;
      const Int128 gap = ((ahead % period) + period) % period;
      if (gap >= a_runs[i].run && period - gap >= b_runs[j].run) return true;
    }
  }
  return false;
}

}  // namespace fastgemm

// The products that this thread computed last, ready to be launched again over other memory.
#include "recent_products.hpp"

#include <utility>

#include "cache.hpp"
#include "canonical.hpp"

namespace fastgemm {
namespace {

constexpr std::size_t slots = 64;
// As much alignment as any decision about a kernel asks for: a line.
constexpr std::uintptr_t alignment = 128;
constexpr std::int64_t far = std::int64_t{1} << 60;  // addresses and reaches beyond: the long way

std::uintptr_t address(const MatrixView& v) { return reinterpret_cast<std::uintptr_t>(v.data); }

RecentProduct& slot_of(const GemmProblem& p) {
  thread_local RecentProduct recent[slots];
  std::uint64_t h = (address(p.a) ^ address(p.b) * 3 ^ address(p.d) * 5) % alignment;
  for (const std::int64_t x : {p.m, p.n, p.k, p.a.row_stride, p.b.row_stride, p.batch})
    h = (h ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u;
  return recent[(h >> 40) % slots];
}

bool same_form(const MatrixView& x, const MatrixView& y) {
  return x.dtype == y.dtype && x.row_stride == y.row_stride && x.col_stride == y.col_stride &&
         x.batch_stride == y.batch_stride && (address(x) ^ address(y)) % alignment == 0;
}

bool same_form(const GemmProblem& x, const GemmProblem& y) {
  return x.m == y.m && x.n == y.n && x.k == y.k && x.batch == y.batch && same_form(x.a, y.a) &&
         same_form(x.b, y.b) && same_form(x.d, y.d) && x.has_c() == y.has_c() &&
         (!x.has_c() || same_form(x.c, y.c));
}

RecentProduct::Reach reach_of(const MatrixView& v, std::int64_t batch, std::int64_t rows,
                              std::int64_t cols) {
  const ByteRange range = byte_range(v, batch, rows, cols);
  const auto base = static_cast<std::int64_t>(address(v));
  return {range.begin - base, range.end - base};
}

bool near(const MatrixView& v, const RecentProduct::Reach& reach) {
  return v.data && address(v) < static_cast<std::uintptr_t>(far) && reach.begin > -far &&
         reach.end < far;
}

bool apart(const MatrixView& x, const RecentProduct::Reach& of_x, const MatrixView& y,
           const RecentProduct::Reach& of_y) {
  const auto at_x = static_cast<std::int64_t>(address(x));
  const auto at_y = static_cast<std::int64_t>(address(y));
  return at_x + of_x.end <= at_y + of_y.begin || at_y + of_y.end <= at_x + of_x.begin;
}

// What validate() asks of the addresses, where ranges alone decide it.
bool clearly_valid(const RecentProduct& r, const GemmProblem& p) {
  if (!near(p.a, r.a) || !near(p.b, r.b) || !near(p.d, r.d)) return false;
  if (!apart(p.d, r.d, p.a, r.a) || !apart(p.d, r.d, p.b, r.b)) return false;
  if (!p.has_c() || (r.c_may_be_d && p.c.data == p.d.data)) return true;
  return near(p.c, r.c) && apart(p.d, r.d, p.c, r.c);
}

// Asked of different addresses, since A and B may be one array.
bool exchanges_operands(GemmProblem p) {
  p.b.data = static_cast<char*>(p.a.data) + alignment;
  return canonical(p).a.data != p.a.data;
}

}  // namespace

GemmProblem RecentProduct::canonical_of(const GemmProblem& problem) const {
  GemmProblem p = canonical;
  p.a.data = exchanged ? problem.b.data : problem.a.data;
  p.b.data = exchanged ? problem.a.data : problem.b.data;
  p.c.data = problem.has_c() ? problem.c.data : nullptr;
  p.d.data = problem.d.data;
  p.alpha = problem.alpha;
  p.beta = problem.beta;
  return p;
}

const RecentProduct* find_recent(const GemmProblem& asked, const GemmConfig& config, int device) {
  if (asked.fusion) return nullptr;
  const RecentProduct& r = slot_of(asked);
  if (!r.launchable || (device >= 0 && r.device != device) || r.generation != cache_generation() ||
      !same_form(r.asked, asked) || r.config != config || !clearly_valid(r, asked))
    return nullptr;
  return &r;
}

void remember(const GemmProblem& asked, const GemmProblem& canonical, const GemmConfig& config,
              int device, std::shared_ptr<const Launchable> launchable) {
  if (asked.fusion || asked.k == 0) return;
  RecentProduct& r = slot_of(asked);
  r.asked = asked;
  r.canonical = canonical;
  r.config = config;
  r.device = device;
  r.generation = cache_generation();
  r.exchanged = exchanges_operands(asked);
  r.c_may_be_d = asked.c.dtype == asked.d.dtype && asked.c.row_stride == asked.d.row_stride &&
                 asked.c.col_stride == asked.d.col_stride &&
                 asked.c.batch_stride == asked.d.batch_stride;
  r.a = reach_of(asked.a, asked.batch, asked.m, asked.k);
  r.b = reach_of(asked.b, asked.batch, asked.k, asked.n);
  r.c = reach_of(asked.c, asked.batch, asked.m, asked.n);
  r.d = reach_of(asked.d, asked.batch, asked.m, asked.n);
  r.launchable = std::move(launchable);
}

}  // namespace fastgemm

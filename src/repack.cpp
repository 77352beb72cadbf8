// Repacking: which operands, where their copies lie, and what they cost.
#include "repack.hpp"

#include <algorithm>

#include "overlap.hpp"

namespace fastgemm {
namespace {

constexpr std::int64_t line_elements = 64;  // 128 bytes
// Of both copies together; more only where it is asked for.
constexpr std::size_t most_bytes = std::size_t{1} << 30;

// An operand as matrices of rows x cols, cols being the index that stays contiguous.
struct Rows {
  std::int64_t rows, cols, row_stride, col_stride, matrices, batch_stride;

  std::int64_t pitch() const { return ceil_div(cols, line_elements) * line_elements; }
  std::int64_t elements() const { return matrices * rows * pitch(); }
};

Rows rows_of(const MatrixView& v, std::int64_t batch, std::int64_t outer, std::int64_t outer_stride,
             std::int64_t k, std::int64_t k_stride) {
  const std::int64_t matrices = matrices_of(v, batch);
  if (major_of(outer_stride, k_stride) == Major::k)
    return {outer, k, outer_stride, k_stride, matrices, v.batch_stride};
  return {k, outer, k_stride, outer_stride, matrices, v.batch_stride};
}

Rows rows_of_a(const GemmProblem& p) {
  return rows_of(p.a, p.batch, p.m, p.a.row_stride, p.k, p.a.col_stride);
}
Rows rows_of_b(const GemmProblem& p) {
  return rows_of(p.b, p.batch, p.n, p.b.col_stride, p.k, p.b.row_stride);
}

// Makes `v` the view of its copy; `k_stride` is that of its strides which counts k.
void place(MatrixView& v, std::int64_t MatrixView::* outer_stride,
           std::int64_t MatrixView::* k_stride, const Rows& r, void* data) {
  const bool k_major = major_of(v.*outer_stride, v.*k_stride) == Major::k;
  v.data = data;
  v.*outer_stride = k_major ? r.pitch() : 1;
  v.*k_stride = k_major ? 1 : r.pitch();
  v.batch_stride = v.batch_stride == 0 ? 0 : r.rows * r.pitch();
}

RepackOperand operand_params(const MatrixView& source, const MatrixView& copy, const Rows& r) {
  RepackOperand o{};
  const MatrixView view = {source.data, source.dtype, r.row_stride, r.col_stride, r.batch_stride};
  const ByteRange range = byte_range(view, r.matrices, r.rows, r.cols);
  o.source = source.data;
  o.copy = copy.data;
  o.source_begin = static_cast<unsigned long long>(range.begin);
  o.source_end = static_cast<unsigned long long>(range.end);
  o.rows = r.rows;
  o.cols = r.cols;
  o.row_stride = r.row_stride;
  o.col_stride = r.col_stride;
  o.batch_stride = r.batch_stride;
  o.copy_pitch = r.pitch();
  o.copy_batch_stride = r.rows * r.pitch();
  const std::int64_t chunks = ceil_div(r.cols, 8);
  while (o.lane_bits < 5 && chunks > REPACK_CHUNKS << o.lane_bits) ++o.lane_bits;
  const std::int64_t segments = ceil_div(chunks, REPACK_CHUNKS << o.lane_bits);
  const std::int64_t ctas = ceil_div(r.rows * segments, REPACK_THREADS >> o.lane_bits);
  // More than the kernel counts stays more than a grid has.
  const Int128 all =
      r.rows * Int128{segments} > UINT32_MAX ? UINT32_MAX : Int128{ctas} * r.matrices;
  o.segments_of_row = static_cast<unsigned>(segments);
  o.ctas_of_matrix = static_cast<unsigned>(ctas);
  o.ctas = static_cast<unsigned>(std::min<Int128>(all, UINT32_MAX));
  return o;
}

double operand_us(const Rows& r, const HardwareSpec& hw) {
  // Read once and written once, at the rate that was measured for copies on an H200; single
  // elements at a fifth of it.
  const double bytes = 4.0 * static_cast<double>(r.matrices) * static_cast<double>(r.rows) *
                       static_cast<double>(r.cols);
  return bytes / (0.87 * hw.dram_gbps * 1e3) * (r.col_stride == 1 ? 1 : 5);
}

}  // namespace

Runs runs_of(const MatrixView& v, Major major, std::int64_t outer_stride, std::int64_t k_stride) {
  const std::int64_t along = major == Major::k ? k_stride : outer_stride;
  const std::int64_t pitch = major == Major::k ? outer_stride : k_stride;
  if (along != 1) return Runs::none;
  const auto address = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(v.data));
  const bool lines = pitch > 0 && (address | pitch * 2 | v.batch_stride * 2) % 128 == 0;
  return lines ? Runs::lines : Runs::rows;
}

std::vector<Repack> repack_choices(const GemmProblem& p, const ArchSpec& arch,
                                   const GemmConfig& wish) {
  std::vector<Repack> choices;
  const auto add = [&](bool a, bool b) {
    const Repack r = {wish.repack_a.value_or(a), wish.repack_b.value_or(b)};
    if (std::find(choices.begin(), choices.end(), r) != choices.end()) return;
    if (choices.empty() || refuse_repack(p, r, wish) == nullptr) choices.push_back(r);
  };
  add(false, false);
  if (p.k == 0) return choices;
  const ProblemTraits traits = traits_of(p);
  // Beside a copy of the shorter operand, the longer one may be read as it lies.
  if (arch.cp_async && traits.shifts_a() && traits.shifts_b()) {
    const bool a_shorter = rows_of_a(p).elements() < rows_of_b(p).elements();
    add(a_shorter, !a_shorter);
  }
  if (arch.tma_wgmma) {
    // What the TMA says of one operand shows beside a copy of the other.
    add(!traits_of(repacked(p, {false, true})).tma, !traits_of(repacked(p, {true, false})).tma);
    add(traits.a_runs != Runs::lines, traits.b_runs != Runs::lines);
  } else {
    add(traits.a_copy_bytes != 16, traits.b_copy_bytes != 16);
  }
  return choices;
}

const char* refuse_repack(const GemmProblem& p, Repack which, const GemmConfig& wish) {
  if (!which.any()) return nullptr;
  if (p.k == 0) return "there is nothing to repack (k = 0)";
  const RepackParams params = repack_params(p, repacked(p, which), which);
  if (std::uint64_t{params.operand[0].ctas} + params.operand[1].ctas > INT32_MAX)
    return "repacking needs more CTAs than a grid has (2147483647): split the batch";
  const bool asked = wish.repack_a.value_or(false) || wish.repack_b.value_or(false);
  if (!asked && repack_bytes(p, which) > most_bytes)
    return "copies of more than 1 GiB are made only where repack_a or repack_b asks for them";
  return nullptr;
}

std::size_t repack_bytes(const GemmProblem& p, Repack which) {
  const std::int64_t a = which.a ? rows_of_a(p).elements() : 0;
  return 2 * static_cast<std::size_t>(a + (which.b ? rows_of_b(p).elements() : 0));
}

GemmProblem repacked(const GemmProblem& p, Repack which, void* workspace) {
  GemmProblem q = p;
  if (which.a)
    place(q.a, &MatrixView::row_stride, &MatrixView::col_stride, rows_of_a(p), workspace);
  if (workspace) workspace = static_cast<char*>(workspace) + repack_bytes(p, {which.a, false});
  if (which.b)
    place(q.b, &MatrixView::col_stride, &MatrixView::row_stride, rows_of_b(p), workspace);
  return q;
}

RepackParams repack_params(const GemmProblem& p, const GemmProblem& q, Repack which) {
  RepackParams params{};
  if (which.a) params.operand[0] = operand_params(p.a, q.a, rows_of_a(p));
  if (which.b) params.operand[1] = operand_params(p.b, q.b, rows_of_b(p));
  return params;
}

double repack_us(const GemmProblem& p, Repack which, const HardwareSpec& hw) {
  if (!which.any()) return 0;
  const double copies =
      (which.a ? operand_us(rows_of_a(p), hw) : 0) + (which.b ? operand_us(rows_of_b(p), hw) : 0);
  return 2.0 + copies;
}

}  // namespace fastgemm

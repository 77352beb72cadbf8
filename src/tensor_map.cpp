// Encodes tensor maps and remembers them.
#include "tensor_map.hpp"

#include <algorithm>

#include "driver.hpp"
#include "fusion.hpp"
#include "planner.hpp"

namespace fastgemm {
namespace {

// `outer`: of A its rows, of B its columns.
struct Side {
  std::int64_t outer, outer_stride, k, k_stride;
  int block_outer, slices;
  int block_k, span;  // span: elements of a row of a swizzle atom
};

TensorBox box_of(const MatrixView& v, Major major, std::int64_t batch, const Side& s) {
  const bool k_major = major == Major::k;
  const bool split_k = k_major && s.block_k > s.span;
  TensorBox t;
  t.data = v.data;
  t.extent[0] = split_k ? s.span : k_major ? s.k : s.outer;
  t.extent[1] = k_major ? s.outer : s.k;
  t.extent[2] = split_k ? s.k / s.span : 1;
  t.extent[3] = matrices_of(v, batch);
  t.stride_bytes[0] = 2 * (k_major ? s.outer_stride : s.k_stride);
  t.stride_bytes[1] = split_k ? 2 * s.span : t.stride_bytes[0];
  t.stride_bytes[2] = v.batch_stride == 0 ? t.stride_bytes[0] : 2 * v.batch_stride;
  t.box[0] = t.pitch = s.span;
  t.box[1] = split_k ? s.block_outer : (k_major ? s.block_outer : s.block_k) / s.slices;
  t.box[2] = split_k ? s.block_k / s.span / s.slices : 1;
  t.box[3] = 1;
  t.dtype = v.dtype;
  return t;
}

// Gates and ups in turns of eight, whatever lies between them.
TensorBox gated(TensorBox t, const Side& s, const GateColumns& columns) {
  const std::int64_t bytes = 2 * s.outer_stride;
  t.extent[0] = s.k;
  t.extent[1] = 8, t.extent[2] = 2, t.extent[3] = s.outer / 16;
  t.stride_bytes[0] = columns.step * bytes;
  t.stride_bytes[1] = columns.offset * bytes;
  t.stride_bytes[2] = 8 * columns.step * bytes;
  t.box[1] = 8, t.box[2] = 2, t.box[3] = s.block_outer / 16 / (s.block_k > s.span ? 1 : s.slices);
  return t;
}

// Columns of a k-tile of several come one by one there, and slices of one column are equally high
// (device/ring_sm90.cuh, TmaTile::copy_rows). Rows of K, and those of gates and ups, come in whole
// boxes.
OperandBoxes with_edge(const TensorBox& whole, Major major, const Side& s) {
  OperandBoxes boxes = {whole, whole};
  const std::int64_t present = s.outer % s.block_outer;
  if (major == Major::mn || present == 0) return boxes;
  const std::int64_t slices = s.block_k > s.span ? 1 : s.slices;
  boxes.edge.box[1] = ceil_div(ceil_div(present, slices), 8) * 8;
  boxes.edge.box[2] = 1;
  return boxes;
}

OperandBoxes boxes_of(const GemmProblem& p, const MatrixView& v, Major major, bool gate,
                      const Side& s) {
  const TensorBox box = box_of(v, major, p.batch, s);
  if (!gate) return with_edge(box, major, s);
  const TensorBox both = gated(box, s, gate_columns(p));
  return {both, both};
}

const char* refuse_operand(const TensorBox& t) {
  constexpr std::int64_t most_extent = std::int64_t{1} << 31, most_stride = std::int64_t{1} << 40;
  for (std::int64_t e : t.extent)
    if (e >= most_extent) return "the TMA counts to 2^31 - 1; an extent of A or B exceeds it";
  for (std::int64_t s : t.stride_bytes)
    if (s <= 0 || s >= most_stride)
      return "the TMA needs positive strides below 2^40 bytes in A and B";
  return nullptr;
}

std::size_t slot_of(const TensorBox& t, std::size_t slots) {
  std::uint64_t h = reinterpret_cast<std::uintptr_t>(t.data);
  for (std::int64_t x : {t.extent[0], t.extent[1], t.stride_bytes[0], t.box[0], t.box[1], t.box[2]})
    h = (h ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u;
  return (h >> 32) % slots;
}

TensorMap encode(const TensorBox& t) {
  std::uint64_t extents[4], strides[3];
  for (int i = 0; i < 4; ++i) extents[i] = static_cast<std::uint64_t>(t.extent[i]);
  for (int i = 0; i < 3; ++i) strides[i] = static_cast<std::uint64_t>(t.stride_bytes[i]);
  const std::uint32_t box[4] = {
      static_cast<std::uint32_t>(t.box[0]), static_cast<std::uint32_t>(t.box[1]),
      static_cast<std::uint32_t>(t.box[2]), static_cast<std::uint32_t>(t.box[3])};
  const std::uint32_t steps[4] = {1, 1, 1, 1};
  // The swizzle is that of the panel in shared memory: wider than the box where a block tile has
  // fewer than 64 rows.
  const CUtensorMapSwizzle swizzle = t.pitch == 64   ? CU_TENSOR_MAP_SWIZZLE_128B
                                     : t.pitch == 32 ? CU_TENSOR_MAP_SWIZZLE_64B
                                     : t.pitch == 16 ? CU_TENSOR_MAP_SWIZZLE_32B
                                                     : CU_TENSOR_MAP_SWIZZLE_NONE;
  // A miss in L2 brings in a line and no neighbour: of weights that come from DRAM, neighbours cost
  // 4 % (measured on an H200).
  TensorMap map;
  check(driver().tensor_map_encode_tiled(
            reinterpret_cast<CUtensorMap*>(&map),
            t.dtype == DType::bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16
                                   : CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            4, t.data, extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
            CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE),
        "cuTensorMapEncodeTiled");
  return map;
}

}  // namespace

bool TensorBox::operator==(const TensorBox& o) const {
  return data == o.data && dtype == o.dtype && std::equal(extent, extent + 4, o.extent) &&
         std::equal(stride_bytes, stride_bytes + 3, o.stride_bytes) &&
         std::equal(box, box + 4, o.box) && pitch == o.pitch;
}

OperandBoxes tensor_boxes_a(const GemmProblem& p, const KernelConfig& c) {
  const int slices = c.multicast ? c.cluster_n : 1;
  const Side side = {p.m,       p.a.row_stride, p.k,       p.a.col_stride,
                     c.block_m, slices,         c.block_k, c.swizzle_bytes / 2};
  return boxes_of(p, p.a, c.a_major, c.gate_along_m(), side);
}

OperandBoxes tensor_boxes_b(const GemmProblem& p, const KernelConfig& c) {
  const int slices = c.multicast ? c.cluster_m : 1;
  const Side side = {p.n,       p.b.col_stride, p.k,       p.b.row_stride,
                     c.block_n, slices,         c.block_k, c.swizzle_bytes / 2};
  return boxes_of(p, p.b, c.b_major, c.gate_along_n(), side);
}

TensorBox tensor_box_d(const GemmProblem& p, const KernelConfig& c) {
  // Panels of a warpgroup (device/epilogue_sm90.cuh). With the operands swapped the problem is
  // transposed, and D's columns are the contiguous ones.
  const int panel_rows = std::min(c.warp_m, 64);
  const Side side = {p.d_rows(), p.d.row_stride, p.d_cols(), p.d.col_stride, panel_rows, 1, 64, 64};
  TensorBox t = box_of(p.d, c.swap_ab ? Major::mn : Major::k, p.batch, side);
  t.box[0] = c.swap_ab ? panel_rows : store_panel_cols(c);
  t.box[1] = c.swap_ab ? store_panel_cols(c) : panel_rows;
  t.pitch = c.swap_ab ? 64 : store_panel_cols(c);
  return t;
}

const char* refuse_tma(const GemmProblem& p, const ProblemTraits& t, bool shifts_a, bool shifts_b) {
  if (p.k == 0) return "there is nothing for the TMA to fetch (k = 0)";
  if ((t.a_copy_bytes != 16 && !shifts_a) || (t.b_copy_bytes != 16 && !shifts_b))
    return "the TMA needs 16-byte aligned addresses and strides, and one unit stride, in A and B";
  KernelConfig c;  // with any tile
  c.block_m = c.block_n = c.block_k = 64;
  c.a_major = t.a_major;
  c.b_major = t.b_major;
  const char* why = shifts_a ? nullptr : refuse_operand(tensor_boxes_a(p, c).whole);
  return why || shifts_b ? why : refuse_operand(tensor_boxes_b(p, c).whole);
}

const char* refuse_tma_stores(const GemmProblem& p) {
  if (p.has_c()) return "C is added in registers: the TMA only stores";
  if (size_of(p.d.dtype) != 2) return "TMA stores are written for a 16-bit D";
  if (p.batch > 1 && p.d.batch_stride == 0) return "the batches of D lie in one place";
  KernelConfig c;
  c.swap_ab = p.d.col_stride != 1;
  const MatrixView& d = p.d;
  const std::int64_t strides = (c.swap_ab ? d.col_stride : d.row_stride) | d.batch_stride;
  if ((c.swap_ab && d.row_stride != 1) || strides % 8 != 0 ||
      reinterpret_cast<std::uintptr_t>(d.data) % 16 != 0)
    return "the TMA needs 16-byte aligned addresses and strides in D";
  return refuse_operand(tensor_box_d(p, c));
}

const TensorMap& tensor_map(const TensorBox& box) {
  struct Entry {
    TensorBox box{};
    TensorMap map;
  };
  constexpr std::size_t slots = 64;
  thread_local Entry entries[slots];
  Entry& entry = entries[slot_of(box, slots)];
  if (!(entry.box == box)) {
    entry.map = encode(box);
    entry.box = box;
  }
  return entry.map;
}

OperandMaps operand_maps(const OperandBoxes& boxes) {
  OperandMaps maps = {tensor_map(boxes.whole), {}};
  maps.edge = boxes.edge == boxes.whole ? maps.whole : tensor_map(boxes.edge);
  return maps;
}

}  // namespace fastgemm

// Packs and unpacks operands in host memory.
#include "host_layout.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>

#include "overlap.hpp"

namespace fastgemm {
namespace {

// One index of a strided copy; steps in bytes.
struct Walk {
  std::int64_t extent, from_step, to_step;
};
using Walks = std::array<Walk, 3>;

Walks walks(const Extents& e, const MatrixView& from, const MatrixView& to, std::int64_t element) {
  return {{{e.batch, from.batch_stride * element, to.batch_stride * element},
           {e.rows, from.row_stride * element, to.row_stride * element},
           {e.cols, from.col_stride * element, to.col_stride * element}}};
}

void copy_strided(Walks walks, std::int64_t element, const char* from, char* to) {
  // The innermost loop takes the shortest steps.
  std::sort(walks.begin(), walks.end(), [](const Walk& a, const Walk& b) {
    return std::llabs(a.from_step) + std::llabs(a.to_step) >
           std::llabs(b.from_step) + std::llabs(b.to_step);
  });
  const auto [outer, middle, inner] = walks;
  const bool contiguous = inner.from_step == element && inner.to_step == element;
  for (std::int64_t i = 0; i < outer.extent; ++i) {
    for (std::int64_t j = 0; j < middle.extent; ++j) {
      const char* source = from + i * outer.from_step + j * middle.from_step;
      char* target = to + i * outer.to_step + j * middle.to_step;
      const std::int64_t steps = contiguous ? 1 : inner.extent;
      const auto bytes = static_cast<std::size_t>(contiguous ? inner.extent * element : element);
      for (std::int64_t k = 0; k < steps; ++k)
        std::memcpy(target + k * inner.to_step, source + k * inner.from_step, bytes);
    }
  }
}

// An index along which the view has one value is a single step.
std::int64_t distinct(std::int64_t extent, std::int64_t stride) {
  return stride == 0 ? std::min<std::int64_t>(extent, 1) : extent;
}

}  // namespace

HostLayout::HostLayout(const MatrixView& host, const Extents& e)
    : host_(host), copy_(host), element_(static_cast<std::int64_t>(size_of(host.dtype))) {
  extents_ = {distinct(e.batch, host.batch_stride), distinct(e.rows, host.row_stride),
              distinct(e.cols, host.col_stride)};
  const Int128 packed_bytes = Int128{extents_.batch} * extents_.rows * extents_.cols * element_;
  const ByteRange range = byte_range(host, extents_.batch, extents_.rows, extents_.cols);
  begin_ = reinterpret_cast<char*>(range.begin);
  dense_ = range.end - range.begin <= packed_bytes;
  bytes_ = dense_ ? range.end - range.begin : static_cast<std::int64_t>(packed_bytes);
  if (!dense_) set_packed_strides();
}

void HostLayout::set_packed_strides() {
  const bool rows_inside =
      copy_.col_stride == 0 ||
      (copy_.row_stride != 0 && std::llabs(copy_.row_stride) < std::llabs(copy_.col_stride));
  copy_.row_stride = extents_.rows == 1 ? 0 : rows_inside ? 1 : extents_.cols;
  copy_.col_stride = extents_.cols == 1 ? 0 : rows_inside ? extents_.rows : 1;
  copy_.batch_stride = extents_.batch == 1 ? 0 : extents_.rows * extents_.cols;
}

MatrixView HostLayout::at(std::uintptr_t address) const {
  MatrixView view = copy_;
  const std::ptrdiff_t first = dense_ ? static_cast<char*>(host_.data) - begin_ : 0;
  view.data = reinterpret_cast<void*>(address + static_cast<std::uintptr_t>(first));
  return view;
}

void HostLayout::pack(char* packed) const {
  copy_strided(walks(extents_, host_, copy_, element_), element_,
               static_cast<const char*>(host_.data), packed);
}

void HostLayout::unpack(const char* packed) const {
  copy_strided(walks(extents_, copy_, host_, element_), element_, packed,
               static_cast<char*>(host_.data));
}

}  // namespace fastgemm

// The arrays in global memory: which bytes are elements of them.
#include "emulator/global_memory.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

namespace fastgemm::emulated {
namespace {

std::int64_t magnitude(std::int64_t x) { return x < 0 ? -x : x; }

std::string hex(const void* address) {
  char text[32];
  std::snprintf(text, sizeof text, "%p", address);
  return text;
}

}  // namespace

Array::Array(std::string name, const MatrixView& view, std::int64_t batch, std::int64_t rows,
             std::int64_t cols, Use use)
    : name_(std::move(name)),
      view_(view),
      batch_(batch),
      rows_(rows),
      cols_(cols),
      use_(use),
      range_(byte_range(view, batch, rows, cols)) {
  const auto size = static_cast<std::int64_t>(size_of(view.dtype));
  const auto add = [&](std::int64_t stride, std::int64_t extent, std::int64_t elements) {
    if (extent <= 1 || stride == 0) return;
    // Backwards: the numbering is counted from the far end.
    indices_.push_back({magnitude(stride) * size, extent, stride < 0 ? -elements : elements});
  };
  add(view.batch_stride, batch, rows * cols);
  add(view.row_stride, rows, cols);
  add(view.col_stride, cols, 1);
  std::stable_sort(indices_.begin(), indices_.end(),
                   [](const Index& x, const Index& y) { return x.stride > y.stride; });
  std::int64_t inside = size;
  for (auto i = indices_.rbegin(); i != indices_.rend(); ++i) {
    if (i->stride < inside) nested_ = false;
    inside = i->stride * (i->extent - 1) + inside;
  }
  if (use_ == Use::write && nested_) {
    written_.reset(new std::atomic<std::uint8_t>[static_cast<std::size_t>(batch * rows * cols)]);
    for (std::int64_t i = 0; i < batch * rows * cols; ++i)
      written_[static_cast<std::size_t>(i)] = 0;
  }
}

std::int64_t Array::element_at(std::int64_t offset, std::int64_t& following) const {
  const auto size = static_cast<std::int64_t>(size_of(view_.dtype));
  std::int64_t element = 0;
  following = 0;
  for (const Index& index : indices_) {
    const std::int64_t i = offset / index.stride;
    if (i >= index.extent) return -1;
    offset -= i * index.stride;
    element += index.elements > 0 ? i * index.elements : (index.extent - 1 - i) * -index.elements;
    if (index.stride == size && index.elements > 0) following = index.extent - 1 - i;
  }
  return offset == 0 ? element : -1;
}

bool Array::is_near(const void* address) const {
  const auto at = reinterpret_cast<std::intptr_t>(address);
  return at >= range_.begin && at < range_.end;
}

bool Array::contains(const void* address, std::int64_t bytes) const {
  const auto begin = reinterpret_cast<std::intptr_t>(address);
  if (begin < range_.begin || begin + bytes > range_.end) return false;
  if (!nested_) return true;
  const auto size = static_cast<std::int64_t>(size_of(view_.dtype));
  std::int64_t following = 0;
  for (std::int64_t at = 0; at < bytes; at += (1 + following) * size)
    if (element_at(begin - range_.begin + at, following) < 0) return false;
  return true;
}

bool Array::touches(const void* address, std::int64_t bytes) const {
  const auto begin = reinterpret_cast<std::intptr_t>(address);
  if (begin < range_.begin || begin + bytes > range_.end) return false;
  const auto size = static_cast<std::int64_t>(size_of(view_.dtype));
  for (std::int64_t at = 0; at < bytes; at += size)
    if (contains(static_cast<const char*>(address) + at, size)) return true;
  return false;
}

bool Array::ends_in(const void* address, std::int64_t bytes) const {
  const auto size = static_cast<std::int64_t>(size_of(view_.dtype));
  return reinterpret_cast<std::intptr_t>(address) >= range_.begin &&
         contains(static_cast<const char*>(address) + bytes - size, size);
}

bool Array::mark_written(const void* address, std::int64_t bytes) {
  if (!written_) return true;
  const auto size = static_cast<std::int64_t>(size_of(view_.dtype));
  bool first = true;
  std::int64_t following = 0;
  const std::int64_t step = indices_.empty() ? 1 : indices_.back().elements;
  for (std::int64_t at = 0; at < bytes;) {
    std::int64_t element =
        element_at(reinterpret_cast<std::intptr_t>(address) - range_.begin + at, following);
    const std::int64_t run = std::min(1 + following, (bytes - at) / size);
    for (std::int64_t i = 0; i < run; ++i, element += step)
      first &= written_[static_cast<std::size_t>(element)].exchange(1) == 0;
    at += run * size;
  }
  return first;
}

std::string Array::index_text(std::int64_t element) const {
  const std::int64_t col = element % cols_, row = element / cols_ % rows_;
  const std::string batch = batch_ > 1 ? std::to_string(element / cols_ / rows_) + ", " : "";
  return "[" + batch + std::to_string(row) + ", " + std::to_string(col) + "]";
}

std::string Array::first_unwritten() const {
  if (!written_) return {};
  for (std::int64_t i = 0; i < batch_ * rows_ * cols_; ++i)
    if (!written_[static_cast<std::size_t>(i)]) return index_text(i);
  return {};
}

std::string Array::place(const void* address) const {
  const auto at = reinterpret_cast<std::intptr_t>(address);
  std::int64_t following = 0;
  if (is_near(address) && nested_) {
    const std::int64_t element = element_at(at - range_.begin, following);
    if (element >= 0) return name_ + index_text(element);
    return "in a gap of " + name_ + ", between its rows";
  }
  if (is_near(address)) return "in " + name_;
  return at < range_.begin
             ? std::to_string(range_.begin - at) + " bytes before the begin of " + name_
             : std::to_string(at - range_.end) + " bytes behind the end of " + name_;
}

Array* GlobalMemory::find(const void* address, std::int64_t bytes, Need need) const {
  const bool to_write = need == Need::all_to_write;
  for (const auto& array : arrays_) {
    if (!(to_write ? array->writable() : array->readable())) continue;
    if (array->contains(address, bytes) ||
        (need == Need::some_to_read && array->touches(address, bytes)) ||
        (need == Need::last_to_read && array->ends_in(address, bytes)))
      return array.get();
  }
  return nullptr;
}

std::string GlobalMemory::explain(const void* address, std::int64_t bytes, Need need) const {
  std::string text = std::to_string(bytes) + " bytes at " + hex(address);
  const Array* nearest = nullptr;
  for (const auto& array : arrays_) {
    if (array->contains(address, bytes))
      return text + " are " + array->place(address) + ", which is only " +
             (need == Need::all_to_write ? "read" : "written");
    if (array->is_near(address)) nearest = array.get();
  }
  if (nearest) return text + ", " + nearest->place(address) + ", are not all elements of it";
  text += " belong to no array:";
  for (const auto& array : arrays_) text += " " + array->place(address) + ";";
  text.pop_back();
  return text;
}

}  // namespace fastgemm::emulated

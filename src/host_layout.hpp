// How an operand in host memory lies on the device: as a copy of its very bytes, or packed.
#pragma once

#include <cstdint>

#include "fastgemm/problem.hpp"

namespace fastgemm {

struct Extents {
  std::int64_t batch, rows, cols;
};

// Bytes without gaps are copied as they are, whatever their strides; other views are packed. What
// has one value along an index (stride 0) is kept once.
class HostLayout {
 public:
  HostLayout(const MatrixView& host, const Extents& extents);

  bool dense() const { return dense_; }  // the copy holds the bytes [begin(), begin() + bytes())
  std::size_t bytes() const { return static_cast<std::size_t>(bytes_); }
  char* begin() const { return begin_; }

  // The view of a copy that begins at `address`.
  MatrixView at(std::uintptr_t address) const;

  // Between the host's view and a packed copy.
  void pack(char* packed) const;
  void unpack(const char* packed) const;

 private:
  void set_packed_strides();

  MatrixView host_, copy_;
  Extents extents_{};
  std::int64_t element_;
  bool dense_ = false;
  std::int64_t bytes_ = 0;
  char* begin_ = nullptr;
};

}  // namespace fastgemm

// What the expression of an epilogue reads besides the product: values of a tensor, a row, a column
// or an element. Loads are masked at the edges; a tile's place is found once.
#pragma once

#include "fastgemm/device/params.cuh"
#include "fastgemm/device/ptx/atomic.cuh"
#include "fastgemm/device/ptx/convert.cuh"
#include "fastgemm/device/ptx/global.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm {

// Where a tile of the result begins: matrix of the batch, row and column.
struct TileOrigin {
  i64 batch, m, n;
};

// An epilogue has `apply(values, row, col, valid)`: COUNT neighbours of a row of the tile, of which
// the first `valid` exist, maybe none; the others may become anything, but (row, col) is always a
// place that exists. This one is none.
struct NoEpilogue {
  static constexpr bool ACTIVE = false;
};

// Kernels with an epilogue are launched with FusedParams.
template <class Epilogue>
FASTGEMM_DEVICE Epilogue epilogue_at(const GemmParams& p, const TileOrigin& at) {
  if constexpr (Epilogue::ACTIVE)
    return Epilogue(static_cast<const FusedParams&>(p).epilogue, at);
  else
    return {};
}

// COUNT values that are one, or one each.
struct Uniform {
  float value;
  FASTGEMM_DEVICE float operator[](int) const { return value; }
};
template <int COUNT>
struct Values {
  float value[COUNT];
  FASTGEMM_DEVICE float operator[](int i) const { return value[i]; }
};

// 4, 8 or 16 bytes in one access.
template <int COUNT>
struct alignas(4 * COUNT) Words {
  u32 word[COUNT];
};

template <class Element>
FASTGEMM_DEVICE const typename Element::Bits* first_of(const EpilogueOperand& x,
                                                       const TileOrigin& at) {
  return static_cast<const typename Element::Bits*>(x.data) + at.batch * x.batch_stride +
         at.m * x.m_stride + at.n * x.n_stride;
}

// Ordinary loads, of which the compiler may merge those of one address, and no branches: there are
// many copies of this code. WIDE promises that elements lie side by side, 16-byte aligned, and that
// rows are whole groups of 16; else what does not exist is read where the first lies.
template <class Element>
FASTGEMM_DEVICE float load_one(const typename Element::Bits* p) {
  return ptx::to_float(Element{}, ptx::ld_global_mergeable(p));
}

template <class Element, int COUNT, bool WIDE>
FASTGEMM_DEVICE Values<COUNT> load_row(const typename Element::Bits* p, i64 stride, int valid) {
  using Bits = typename Element::Bits;
  constexpr int BYTES = COUNT * static_cast<int>(sizeof(Bits));
  Values<COUNT> x;
  if constexpr (WIDE && COUNT > 1) {
    using Piece = Words<min_of(BYTES / 4, 4)>;
    constexpr int IN_PIECE = sizeof(Piece) / sizeof(Bits);
#pragma unroll
    for (int i = 0; i < COUNT; i += IN_PIECE) {
      const Piece piece = ptx::ld_global_mergeable(reinterpret_cast<const Piece*>(p + i));
#pragma unroll
      for (int j = 0; j < IN_PIECE; ++j) {
        const int bit = j * 8 * static_cast<int>(sizeof(Bits));
        const auto bits = static_cast<Bits>(piece.word[bit / 32] >> bit % 32);
        x.value[i + j] = ptx::to_float(Element{}, bits);
      }
    }
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      x.value[i] = load_one<Element>(p + (i < valid ? i : 0) * stride);
  }
  return x;
}

// x
template <class Element>
class PerTensor {
 public:
  FASTGEMM_DEVICE PerTensor(const EpilogueOperand& x, const TileOrigin& at)
      : value_(load_one<Element>(static_cast<const typename Element::Bits*>(x.data) +
                                 at.batch * x.batch_stride)) {}
  template <int COUNT>
  FASTGEMM_DEVICE Uniform at(int, int, int) const {
    return {value_};
  }

 private:
  float value_;
};

// x[m]
template <class Element>
class PerRow {
 public:
  FASTGEMM_DEVICE PerRow(const EpilogueOperand& x, const TileOrigin& at)
      : first_(first_of<Element>(x, at)), stride_(x.m_stride) {}
  template <int COUNT>
  FASTGEMM_DEVICE Uniform at(int row, int, int) const {
    return {load_one<Element>(first_ + row * stride_)};
  }

 private:
  const typename Element::Bits* first_;
  i64 stride_;
};

// x[n]
template <class Element, bool WIDE>
class PerColumn {
 public:
  FASTGEMM_DEVICE PerColumn(const EpilogueOperand& x, const TileOrigin& at)
      : first_(first_of<Element>(x, at)), stride_(WIDE ? 1 : x.n_stride) {}
  template <int COUNT>
  FASTGEMM_DEVICE Values<COUNT> at(int, int col, int valid) const {
    return load_row<Element, COUNT, WIDE>(first_ + col * stride_, stride_, valid);
  }

 private:
  const typename Element::Bits* first_;
  i64 stride_;
};

// x[m, n]
template <class Element, bool WIDE>
class PerElement {
 public:
  FASTGEMM_DEVICE PerElement(const EpilogueOperand& x, const TileOrigin& at)
      : first_(first_of<Element>(x, at)), m_stride_(x.m_stride), n_stride_(WIDE ? 1 : x.n_stride) {}
  template <int COUNT>
  FASTGEMM_DEVICE Values<COUNT> at(int row, int col, int valid) const {
    return load_row<Element, COUNT, WIDE>(first_ + row * m_stride_ + col * n_stride_, n_stride_,
                                          valid);
  }

 private:
  const typename Element::Bits* first_;
  i64 m_stride_, n_stride_;
};

// What keep() leaves of each element.
template <class Element, bool WIDE>
class KeptElements {
  using Bits = typename Element::Bits;

 public:
  FASTGEMM_DEVICE KeptElements(const EpilogueOperand& x, const TileOrigin& at)
      : first_(const_cast<Bits*>(first_of<Element>(x, at))),
        m_stride_(x.m_stride),
        n_stride_(WIDE ? 1 : x.n_stride) {}
  template <int COUNT>
  FASTGEMM_DEVICE void store(const float (&x)[COUNT], int row, int col, int valid) const {
    Bits* p = first_ + row * m_stride_ + col * n_stride_;
    if constexpr (WIDE && COUNT > 1) {
      constexpr int WORDS = COUNT * static_cast<int>(sizeof(Bits)) / 4, PIECE = min_of(WORDS, 4);
      union {
        Bits bits[COUNT];
        u32 words[WORDS];
      };
#pragma unroll
      for (int i = 0; i < COUNT; ++i) bits[i] = ptx::from_float(Element{}, x[i]);
      if (valid <= 0) return;
#pragma unroll
      for (int i = 0; i < WORDS; i += PIECE)
        ptx::st_global_words<PIECE>(reinterpret_cast<u32*>(p) + i, words + i);
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; ++i)
        if (i < valid) ptx::st_global(p + i * n_stride_, ptx::from_float(Element{}, x[i]));
    }
  }

 private:
  Bits* first_;
  i64 m_stride_, n_stride_;
};

// The largest magnitude that amax() sees, as float32. Bits of magnitudes are ordered as these are,
// with NaN above all, so that the result depends on no order.
class LargestMagnitude {
 public:
  FASTGEMM_DEVICE LargestMagnitude(const EpilogueOperand& x, const TileOrigin&)
      : result_(static_cast<u32*>(const_cast<void*>(x.data))) {}
  FASTGEMM_DEVICE ~LargestMagnitude() {
    const u32 largest = ptx::largest_of_warp(bits_);
    if (largest != 0) ptx::raise(result_, largest);
  }
  FASTGEMM_DEVICE float see(float x, bool exists) const {
    if (exists) bits_ = max_of(bits_, __float_as_uint(x) & 0x7fffffffu);
    return x;
  }

 private:
  u32* result_;
  mutable u32 bits_ = 0;
};

}  // namespace fastgemm

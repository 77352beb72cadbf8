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

// An epilogue has `apply<Columns>(values, row, col, valid)`: Columns::COUNT values of a row of the
// tile, those of the columns Columns::at(0), at(1) .. behind `col`. Of the columns from `col` on
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

// Columns beside each other. Where their elements lie so too, 16-byte aligned, in rows that are
// whole groups of 16, they are moved together. `p`: of the first; `valid`: how many exist, all or
// none.
template <int COUNT_>
struct Neighbours {
  static constexpr int COUNT = COUNT_;
  FASTGEMM_DEVICE static int at(int i) { return i; }

  // Ordinary loads, of which the compiler may merge those of one address, and no branches: there
  // are many copies of this code. What does not exist is read where the first lies.
  template <int WORDS>
  FASTGEMM_DEVICE static void load(u32 (&words)[WORDS], const void* p, int) {
    constexpr int PIECE = min_of(WORDS, 4);
#pragma unroll
    for (int i = 0; i < WORDS; i += PIECE) {
      const auto piece =
          ptx::ld_global_mergeable(reinterpret_cast<const Words<PIECE>*>(p) + i / PIECE);
#pragma unroll
      for (int w = 0; w < PIECE; ++w) words[i + w] = piece.word[w];
    }
  }
  // The same of what other rows read too.
  template <int WORDS>
  FASTGEMM_DEVICE static void load_repeated(u32 (&words)[WORDS], const void* p, int valid) {
    load(words, p, valid);
  }

  template <int WORDS>
  FASTGEMM_DEVICE static void store(void* p, u32 (&words)[WORDS], int valid) {
    constexpr int PIECE = min_of(WORDS, 4);
    if (valid <= 0) return;
#pragma unroll
    for (int i = 0; i < WORDS; i += PIECE)
      ptx::st_global_words<PIECE>(static_cast<u32*>(p) + i, words + i);
  }
};

template <class Element>
FASTGEMM_DEVICE const typename Element::Bits* first_of(const EpilogueOperand& x,
                                                       const TileOrigin& at) {
  return static_cast<const typename Element::Bits*>(x.data) + at.batch * x.batch_stride +
         at.m * x.m_stride + at.n * x.n_stride;
}

template <class Element>
FASTGEMM_DEVICE float load_one(const typename Element::Bits* p) {
  return ptx::to_float(Element{}, ptx::ld_global_mergeable(p));
}

// WIDE promises that elements lie as Neighbours and QuadColumns want them, REPEATED that other
// rows read the same. Else what does not exist is read where the first lies.
template <class Element, class Columns, bool WIDE, bool REPEATED>
FASTGEMM_DEVICE Values<Columns::COUNT> load_row(const typename Element::Bits* p, i64 stride,
                                                int valid) {
  using Bits = typename Element::Bits;
  constexpr int COUNT = Columns::COUNT, BITS = 8 * static_cast<int>(sizeof(Bits));
  Values<COUNT> x;
  if constexpr (WIDE && COUNT > 1) {
    u32 words[COUNT * BITS / 32];
    if constexpr (REPEATED)
      Columns::load_repeated(words, p, valid);
    else
      Columns::load(words, p, valid);
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      x.value[i] =
          ptx::to_float(Element{}, static_cast<Bits>(words[i * BITS / 32] >> i * BITS % 32));
  } else {
#pragma unroll
    for (int i = 0; i < COUNT; ++i)
      x.value[i] = load_one<Element>(p + (Columns::at(i) < valid ? Columns::at(i) : 0) * stride);
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
  template <class Columns>
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
  template <class Columns>
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
  template <class Columns>
  FASTGEMM_DEVICE Values<Columns::COUNT> at(int, int col, int valid) const {
    return load_row<Element, Columns, WIDE, true>(first_ + col * stride_, stride_, valid);
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
  template <class Columns>
  FASTGEMM_DEVICE Values<Columns::COUNT> at(int row, int col, int valid) const {
    return load_row<Element, Columns, WIDE, false>(first_ + row * m_stride_ + col * n_stride_,
                                                   n_stride_, valid);
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
  template <class Columns>
  FASTGEMM_DEVICE void store(const float (&x)[Columns::COUNT], int row, int col, int valid) const {
    constexpr int COUNT = Columns::COUNT;
    Bits* p = first_ + row * m_stride_ + col * n_stride_;
    if constexpr (WIDE && COUNT > 1) {
      union {
        Bits bits[COUNT];
        u32 words[COUNT * sizeof(Bits) / 4];
      };
#pragma unroll
      for (int i = 0; i < COUNT; ++i) bits[i] = ptx::from_float(Element{}, x[i]);
      Columns::store(p, words, valid);
    } else {
#pragma unroll
      for (int i = 0; i < COUNT; ++i)
        if (Columns::at(i) < valid)
          ptx::st_global(p + Columns::at(i) * n_stride_, ptx::from_float(Element{}, x[i]));
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

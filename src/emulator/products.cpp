// Matrix products in float32: loops for the compiler to vectorize.
#include "emulator/products.hpp"

#include "fastgemm/device/emulated/numbers.cuh"

#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define FASTGEMM_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define FASTGEMM_WIDE
#endif

namespace fastgemm::emulated {

FASTGEMM_WIDE void widen(const u16* from, float* to, int count, bool bf16) {
  if (bf16) {
    for (int i = 0; i < count; ++i) to[i] = __uint_as_float(static_cast<u32>(from[i]) << 16);
    return;
  }
  for (int i = 0; i < count; ++i) {
    const u32 magnitude = static_cast<u32>(from[i] & 0x7fff) << 13;
    const u32 special = magnitude >= 0x0f800000 ? 0x7f800000 : 0;
    const float value = __uint_as_float(magnitude) * __uint_as_float(0x77800000);
    to[i] = __uint_as_float(__float_as_uint(value) | special |
                            static_cast<u32>(from[i] & 0x8000) << 16);
  }
}

FASTGEMM_WIDE void multiply_add(float* d, int d_pitch, const float* a, const float* b, int m, int n,
                                int k) {
  constexpr int width = 8;  // columns that stay in registers; n is a multiple
  for (int i = 0; i < m; ++i)
    for (int j = 0; j < n; j += width) {
      float sum[width];
      float* to = d + i * d_pitch + j;
      for (int x = 0; x < width; ++x) sum[x] = to[x];
      for (int l = 0; l < k; ++l) {
        const float factor = a[i * k + l];
        for (int x = 0; x < width; ++x) sum[x] += factor * b[l * n + j + x];
      }
      for (int x = 0; x < width; ++x) to[x] = sum[x];
    }
}

FASTGEMM_WIDE void tidy_nans(float* values, int count) {
  u32 any = 0;
  for (int i = 0; i < count; ++i) any |= is_nan(__float_as_uint(values[i])) ? 1 : 0;
  if (!any) return;
  for (int i = 0; i < count; ++i) {
    const u32 bits = __float_as_uint(values[i]);
    if (is_nan(bits) && !is_poison(bits)) values[i] = __uint_as_float(NAN_F32);
  }
}

}  // namespace fastgemm::emulated

// Matrix products in float32, as the Tensor Cores' stand-in: exact products, sums in order of k.
#pragma once

#include "fastgemm/device/emulated/prelude.cuh"

namespace fastgemm::emulated {

// float16 or bfloat16 to float32.
void widen(const u16* from, float* to, int count, bool bf16);

// d[m][n] += a[m][k] * b[k][n], rows of d `d_pitch` apart.
void multiply_add(float* d, int d_pitch, const float* a, const float* b, int m, int n, int k);

// NaNs that arithmetic made become the hardware's; poison stays what it is.
void tidy_nans(float* values, int count);

}  // namespace fastgemm::emulated

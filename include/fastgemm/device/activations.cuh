// The functions of epilogue expressions. One formula each, on every path; NaN gives NaN, and
// infinities what the definitions give in IEEE arithmetic: silu(-inf) = -inf * 0 is NaN.
#pragma once

#include "fastgemm/device/ptx/math.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::math {

constexpr float LOG2_E = 0x1.715476p+0f;

FASTGEMM_DEVICE float abs(float x) { return ptx::absolute(x); }
FASTGEMM_DEVICE float exp(float x) { return ptx::exponential(x); }
FASTGEMM_DEVICE float log(float x) { return ptx::logarithm(x); }
FASTGEMM_DEVICE float sqrt(float x) { return ptx::square_root(x); }

// Unlike the instructions of that name, NaN wins.
FASTGEMM_DEVICE float max(float x, float y) { return x > y || x != x ? x : y; }
FASTGEMM_DEVICE float min(float x, float y) { return x < y || x != x ? x : y; }

FASTGEMM_DEVICE float relu(float x) { return x < 0.0f ? 0.0f : x; }

// 1 / (1 + e^-x).
FASTGEMM_DEVICE float sigmoid(float x) { return ptx::rcp(1.0f + ptx::ex2(-LOG2_E * x)); }

FASTGEMM_DEVICE float silu(float x) { return x * sigmoid(x); }

// Near 0 the first terms of the odd series, so that small values keep their relative accuracy;
// elsewhere 1 - 2 / (1 + e^2x). Within 3e-7 of the value.
FASTGEMM_DEVICE float tanh(float x) {
  const float t = abs(x), square = x * x;
  const float far = 1.0f - 2.0f * ptx::rcp(1.0f + ptx::ex2(2.0f * LOG2_E * t));
  float series = 0x1.0d5036p-6f;  // minimax for |x| < 0.55
  series = series * square - 0x1.af7cccp-5f;
  series = series * square + 0x1.10cef6p-3f;
  series = series * square - 0x1.555452p-2f;
  return t < 0.55f ? x + x * square * series : ptx::copy_sign(far, x);
}

// x * P(a normal variable is below x), by way of the tail at -|x|, which is 2^(a polynomial): no
// difference of nearly equal numbers, and one instruction of the special function unit. The
// polynomial is the minimax one for log2 of the tail up to 6 and falls for good beyond. Within 7e-6
// of the value there, and 6e-9 absolute beyond.
FASTGEMM_DEVICE float gelu(float x) {
  const float t = abs(x);
  float p = -0x1.ec16b8p-20f;
  p = p * t + 0x1.023eb2p-14f;
  p = p * t - 0x1.e7c456p-11f;
  p = p * t + 0x1.16c478p-7f;
  p = p * t - 0x1.ba0886p-5f;
  p = p * t - 0x1.d577dep-2f;
  p = p * t - 0x1.26b86p+0f;
  p = p * t - 0x1.ffff62p-1f;
  const float tail = ptx::ex2(p);
  return x * (x < 0.0f ? tail : 1.0f - tail);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), which is x sigmoid(2 sqrt(2 / pi) (...)).
FASTGEMM_DEVICE float gelu_tanh(float x) {
  constexpr float LINEAR = -0x1.26aec2p+1f, CUBIC = -0x1.a5a7dp-4f;  // times log2(e)
  return x * ptx::rcp(1.0f + ptx::ex2(x * (LINEAR + CUBIC * (x * x))));
}

}  // namespace fastgemm::math

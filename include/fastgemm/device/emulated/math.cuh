// Host bodies of ptx/math.cuh.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE float ex2(float x) { return __builtin_exp2f(x); }
FASTGEMM_DEVICE float rcp(float x) { return 1.0f / x; }
FASTGEMM_DEVICE float absolute(float x) { return __builtin_fabsf(x); }
FASTGEMM_DEVICE float copy_sign(float magnitude, float sign) {
  return __builtin_copysignf(magnitude, sign);
}
FASTGEMM_DEVICE float exponential(float x) { return __builtin_expf(x); }
FASTGEMM_DEVICE float logarithm(float x) { return __builtin_logf(x); }
FASTGEMM_DEVICE float square_root(float x) { return __builtin_sqrtf(x); }

}  // namespace fastgemm::ptx

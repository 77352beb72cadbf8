// The emulator's float16 and bfloat16: every value, every rounding.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "emulator/products.hpp"
#include "fastgemm/device/emulated/numbers.cuh"

namespace fastgemm::emulated {
namespace {

// What the bits mean, by the definition of the formats.
double meaning(u16 bits, int exponent_bits) {
  const int mantissa_bits = 15 - exponent_bits, bias = (1 << (exponent_bits - 1)) - 1;
  const int exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
  const int mantissa = bits & ((1 << mantissa_bits) - 1);
  const double sign = bits & 0x8000 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1)
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  const double fraction = mantissa / std::ldexp(1.0, mantissa_bits);
  return sign *
         (exponent ? std::ldexp(1 + fraction, exponent - bias) : std::ldexp(fraction, 1 - bias));
}

bool same(double x, double y) {
  return (std::isnan(x) && std::isnan(y)) || (x == y && std::signbit(x) == std::signbit(y));
}

TEST(EmulatorNumbers, EveryValueIsWidenedExactly) {
  for (int i = 0; i < 65536; ++i) {
    const auto bits = static_cast<u16>(i);
    float half, brain;
    widen(&bits, &half, 1, false);
    widen(&bits, &brain, 1, true);
    ASSERT_TRUE(same(half, meaning(bits, 5))) << i;
    ASSERT_TRUE(same(brain, meaning(bits, 8))) << i;
    ASSERT_TRUE(same(float16_value(bits), meaning(bits, 5))) << i;
    ASSERT_TRUE(same(bfloat16_value(bits), meaning(bits, 8))) << i;
  }
}

// Between every two neighbours: below, at and above the middle.
template <class Round>
void check_rounding(Round round, int exponent_bits, u16 largest) {
  for (u16 bits = 0; bits < largest; ++bits) {
    const double low = meaning(bits, exponent_bits);
    const double high = meaning(static_cast<u16>(bits + 1), exponent_bits);
    const auto middle = static_cast<float>((low + high) / 2);
    const u16 even = bits % 2 ? static_cast<u16>(bits + 1) : bits;
    ASSERT_EQ(round(static_cast<float>(low)), bits);
    ASSERT_EQ(round(middle), even) << bits;
    ASSERT_EQ(round(-middle), even | 0x8000) << bits;
    ASSERT_EQ(round(std::nextafter(middle, 0.0f)), bits);
    ASSERT_EQ(round(std::nextafter(middle, INFINITY)), bits + 1);
  }
}

TEST(EmulatorNumbers, RoundsToNearestEven) {
  check_rounding(float16_bits, 5, 0x7bff);
  check_rounding(bfloat16_bits, 8, 0x7f7f);
  EXPECT_EQ(float16_bits(65519.996f), 0x7bff);
  EXPECT_EQ(float16_bits(65520.0f), 0x7c00);
  EXPECT_EQ(float16_bits(-1e30f), 0xfc00);
  EXPECT_EQ(bfloat16_bits(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(EmulatorNumbers, PoisonSurvivesAndOtherNansAreTheHardwares) {
  const float poison = __uint_as_float(POISON_F32);
  EXPECT_EQ(float16_bits(poison), POISON_F16);
  EXPECT_EQ(bfloat16_bits(poison), POISON_BF16);
  EXPECT_EQ(__float_as_uint(float16_value(POISON_F16)), POISON_F32);
  EXPECT_EQ(__float_as_uint(bfloat16_value(POISON_BF16)), POISON_F32);
  EXPECT_EQ(float16_bits(std::nanf("")), NAN_16);
  EXPECT_EQ(bfloat16_bits(std::nanf("7")), NAN_16);
  volatile float alpha = -2.5f;
  EXPECT_TRUE(is_poison(__float_as_uint(alpha * poison)));
  EXPECT_TRUE(is_poison(__float_as_uint(poison + alpha)));
  float values[3] = {poison, std::nanf("5"), 1.0f};
  tidy_nans(values, 3);
  EXPECT_EQ(__float_as_uint(values[0]), POISON_F32);
  EXPECT_EQ(__float_as_uint(values[1]), NAN_F32);
  EXPECT_EQ(values[2], 1.0f);
}

}  // namespace
}  // namespace fastgemm::emulated

// 128-bit FNV-1a against published values.
#include <gtest/gtest.h>

#include "hash.hpp"

namespace fastgemm {
namespace {

TEST(Hash, IsFnv1aOf128Bits) {
  EXPECT_EQ(hash128("").hex(), "6c62272e07bb014262b821756295c58d");
  EXPECT_EQ(hash128("a").hex(), "d228cb696f1a8caf78912b704e4a8964");
  EXPECT_EQ(hash128("foobar").hex(), "343e1662793c64bf6f0d3597ba446f18");
}

TEST(Hash, FieldsDoNotRunIntoEachOther) {
  const auto of = [](std::string_view a, std::string_view b) {
    return Hasher().add_field(a).add_field(b).value();
  };
  EXPECT_NE(of("ab", "c"), of("a", "bc"));
  EXPECT_NE(of("", "x"), of("x", ""));
}

}  // namespace
}  // namespace fastgemm

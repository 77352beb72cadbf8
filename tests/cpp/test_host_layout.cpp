// HostLayout: every element of a host view arrives and comes back, whatever the strides, and
// nothing else is touched.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <vector>

#include "host_layout.hpp"

namespace fastgemm {
namespace {

constexpr std::int64_t reach = 40000;  // elements on either side of element (0, 0, 0)

struct Host {
  std::vector<std::uint16_t> memory = std::vector<std::uint16_t>(2 * reach);
  MatrixView view(std::int64_t batch_stride, std::int64_t row_stride, std::int64_t col_stride) {
    return {memory.data() + reach, DType::f16, row_stride, col_stride, batch_stride};
  }
};

std::uint16_t& element(const MatrixView& v, std::int64_t b, std::int64_t i, std::int64_t j) {
  return static_cast<std::uint16_t*>(
      v.data)[b * v.batch_stride + i * v.row_stride + j * v.col_stride];
}

template <typename Body>
void for_each(const Extents& e, Body body) {
  for (std::int64_t b = 0; b < e.batch; ++b)
    for (std::int64_t i = 0; i < e.rows; ++i)
      for (std::int64_t j = 0; j < e.cols; ++j) body(b, i, j);
}

// What gemm_on_host_memory does with an operand, with host memory in the device's place.
std::vector<char> upload(const HostLayout& layout) {
  std::vector<char> device(layout.bytes());
  if (device.empty()) return device;
  if (layout.dense())
    std::memcpy(device.data(), layout.begin(), layout.bytes());
  else
    layout.pack(device.data());
  return device;
}

struct Case {
  const char* name;
  Extents extents;
  std::int64_t batch_stride, row_stride, col_stride;
  bool dense;
};

const Case cases[] = {
    {"row-major", {1, 5, 7}, 0, 7, 1, true},
    {"column-major", {1, 5, 7}, 0, 1, 5, true},
    {"batch of row-major", {3, 5, 7}, 35, 7, 1, true},
    {"batch inside", {3, 5, 7}, 1, 21, 3, true},
    {"flipped rows", {1, 5, 7}, 0, -7, 1, true},
    {"flipped both", {1, 5, 7}, 0, -7, -1, true},
    {"flipped batch", {3, 5, 7}, -35, 7, 1, true},
    {"one matrix for the batch", {3, 5, 7}, 0, 7, 1, true},
    {"one row for all", {1, 5, 7}, 0, 0, 1, true},
    {"one value for all", {3, 5, 7}, 0, 0, 0, true},
    {"overlapping windows", {1, 5, 7}, 0, 1, 1, true},
    {"columns of a wider matrix", {1, 5, 7}, 0, 10, 1, false},
    {"every other row", {1, 5, 7}, 0, 14, 1, false},
    {"every other column", {1, 5, 7}, 0, 14, 2, false},
    {"wide pitch, column-major", {1, 5, 7}, 0, 1, 9, false},
    {"flipped every other column", {2, 5, 7}, 100, -14, -2, false},
    {"wide batch, one row for all", {3, 5, 7}, 100, 0, 1, false},
    {"one column for all, wide", {3, 5, 7}, 100, 3, 0, false},
    {"one row", {1, 1, 7}, 0, 1000, 1, true},
    {"one column", {1, 5, 1}, 0, 1, 1000, true},
    {"no rows", {1, 0, 7}, 0, 7, 1, true},
    {"no batch", {0, 5, 7}, 35, 7, 1, true},
};

TEST(HostLayout, BringsEveryElementToTheDevice) {
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Host host;
    for (std::size_t i = 0; i < host.memory.size(); ++i)
      host.memory[i] = static_cast<std::uint16_t>(i * 7919);
    const MatrixView view = host.view(c.batch_stride, c.row_stride, c.col_stride);
    const HostLayout layout(view, c.extents);
    EXPECT_EQ(layout.dense(), c.dense);
    std::vector<char> device = upload(layout);
    const MatrixView copy = layout.at(reinterpret_cast<std::uintptr_t>(device.data()));
    for_each(c.extents, [&](auto b, auto i, auto j) {
      EXPECT_EQ(element(copy, b, i, j), element(view, b, i, j)) << b << ", " << i << ", " << j;
      const char* address = reinterpret_cast<const char*>(&element(copy, b, i, j));
      EXPECT_TRUE(address >= device.data() && address + 2 <= device.data() + device.size());
    });
    EXPECT_LE(layout.bytes(), 2u * c.extents.batch * c.extents.rows * c.extents.cols);
  }
}

TEST(HostLayout, BringsDBackAndTouchesNothingBetween) {
  for (const Case& c : cases) {
    const bool one_place =
        (c.extents.rows > 1 && c.row_stride == 0) || (c.extents.cols > 1 && c.col_stride == 0) ||
        (c.extents.batch > 1 && c.batch_stride == 0) || c.row_stride == c.col_stride;
    if (one_place || c.dense) continue;
    SCOPED_TRACE(c.name);
    Host host;
    const MatrixView view = host.view(c.batch_stride, c.row_stride, c.col_stride);
    const HostLayout layout(view, c.extents);
    std::vector<char> device(layout.bytes());
    const MatrixView copy = layout.at(reinterpret_cast<std::uintptr_t>(device.data()));
    std::uint16_t next = 1;
    for_each(c.extents, [&](auto b, auto i, auto j) { element(copy, b, i, j) = next++; });
    layout.unpack(device.data());
    next = 1;
    for_each(c.extents, [&](auto b, auto i, auto j) {
      EXPECT_EQ(element(view, b, i, j), next++);
      element(view, b, i, j) = 0;
    });
    EXPECT_EQ(host.memory, Host().memory) << "something beside D was written";
  }
}

TEST(HostLayout, RandomStridesAgreeElementByElement) {
  std::mt19937 random(5);
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(random);
  };
  for (int round = 0; round < 2000; ++round) {
    Host host;
    for (std::uint16_t& x : host.memory) x = static_cast<std::uint16_t>(random());
    const Extents extents{pick(0, 4), pick(0, 9), pick(0, 9)};
    const MatrixView view = host.view(pick(-2000, 2000), pick(-300, 300), pick(-20, 20));
    const HostLayout layout(view, extents);
    std::vector<char> device = upload(layout);
    const MatrixView copy = layout.at(reinterpret_cast<std::uintptr_t>(device.data()));
    int wrong = 0;
    for_each(extents, [&](auto b, auto i, auto j) {
      wrong += element(copy, b, i, j) != element(view, b, i, j);
    });
    ASSERT_EQ(wrong, 0) << "strides " << view.batch_stride << ", " << view.row_stride << ", "
                        << view.col_stride;
  }
}

}  // namespace
}  // namespace fastgemm

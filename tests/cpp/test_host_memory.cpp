// gemm_on_host_memory without a GPU: what it checks first, and that a failure leaves D and the
// device's memory alone.
#include <gtest/gtest.h>

#include <vector>

#include "fake_driver.hpp"
#include "fastgemm/gemm.hpp"

namespace fastgemm {
namespace {

using test::FakeDriver;

struct Arrays {
  static constexpr std::int64_t m = 5, n = 6, k = 7;
  std::vector<std::uint16_t> a = std::vector<std::uint16_t>(m * k, 0x3c00),
                             b = std::vector<std::uint16_t>(n * k, 0x3c00),
                             d = std::vector<std::uint16_t>(m * 2 * n, 0x7777);

  GemmProblem problem(std::int64_t d_row_stride = n) {
    GemmProblem p;
    p.m = m, p.n = n, p.k = k;
    p.a = {a.data(), DType::f16, k, 1, 0};
    p.b = {b.data(), DType::f16, 1, k, 0};
    p.d = {d.data(), DType::f16, d_row_stride, 1, 0};
    return p;
  }
  bool d_is_untouched() const { return d == Arrays().d; }
};

class HostMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    NEED_NVRTC();
    library_ = test::fake_libcuda();
    if (library_.empty()) GTEST_SKIP() << "no compiler to build the fake driver with";
  }

  template <typename Body>
  void with_fake(Body body) {
    test::in_child(
        {{"FASTGEMM_NVRTC", test::nvrtc_paths().front()}, {"FASTGEMM_CACHE_DIR", cache_.path()}},
        [&] {
          const FakeDriver fake(library_);
          body(fake);
          EXPECT_EQ(fake["fake_allocations"], 0) << "device memory was not given back";
          EXPECT_EQ(fake["fake_streams"], 0) << "a stream was not given back";
          EXPECT_EQ(fake["fake_pushed"], 0);
        });
  }

  test::TempFolder cache_;
  std::string library_;
};

TEST_F(HostMemory, DComesBackAndWhatLiesBetweenItsRowsStays) {
  with_fake([](const FakeDriver& fake) {
    for (const std::int64_t pitch : {Arrays::n, 2 * Arrays::n}) {
      Arrays arrays;
      gemm_on_host_memory(arrays.problem(pitch));
      // The fake computes nothing: D is the device's zeroed memory.
      for (std::int64_t i = 0; i < static_cast<std::int64_t>(arrays.d.size()); ++i) {
        const bool in_d = i / pitch < Arrays::m && i % pitch < Arrays::n;
        EXPECT_EQ(arrays.d[i], in_d ? 0 : 0x7777) << "element " << i << ", pitch " << pitch;
      }
    }
    EXPECT_EQ(fake["fake_launches"], 2);
  });
}

TEST_F(HostMemory, AFailedLaunchOrKernelLeavesDAlone) {
  with_fake([](const FakeDriver& fake) {
    for (const char* failing : {"fake_launch", "fake_synchronize"}) {
      Arrays arrays;
      fake[failing] = 700;
      EXPECT_THROW(gemm_on_host_memory(arrays.problem()), DeviceError) << failing;
      fake[failing] = 0;
      EXPECT_TRUE(arrays.d_is_untouched()) << failing;
    }
  });
}

TEST_F(HostMemory, OutOfMemoryNamesTheBytesAndTheDevice) {
  with_fake([](const FakeDriver& fake) {
    Arrays arrays;
    fake["fake_alloc"] = 2;
    try {
      gemm_on_host_memory(arrays.problem());
      FAIL() << "no error";
    } catch (const DeviceError& error) {
      const std::string what = error.what();
      EXPECT_NE(what.find("70 bytes on device 0 (NVIDIA H200)"), std::string::npos) << what;
      EXPECT_EQ(error.code, 2);
    }
    EXPECT_TRUE(arrays.d_is_untouched());
  });
}

TEST_F(HostMemory, EmptyProductsLaunchNothingAndKOfZeroReadsNoOperand) {
  with_fake([](const FakeDriver& fake) {
    Arrays arrays;
    GemmProblem p = arrays.problem();
    p.m = 0;
    gemm_on_host_memory(p);
    p.m = Arrays::m, p.batch = 0;
    gemm_on_host_memory(p);
    EXPECT_EQ(fake["fake_launches"], 0);
    EXPECT_TRUE(arrays.d_is_untouched());
    p.batch = 1, p.k = 0;
    p.a.data = p.b.data = nullptr;
    gemm_on_host_memory(p);
    EXPECT_EQ(fake["fake_launches"], 1);
    EXPECT_FALSE(arrays.d_is_untouched());
  });
}

TEST_F(HostMemory, BadProblemsAreRefusedBeforeAnythingIsAllocated) {
  with_fake([](const FakeDriver& fake) {
    Arrays arrays;
    GemmProblem p = arrays.problem();
    p.b.dtype = DType::bf16;
    EXPECT_THROW(gemm_on_host_memory(p), InvalidType);
    p = arrays.problem();
    p.d.row_stride = 1;
    EXPECT_THROW(gemm_on_host_memory(p), InvalidValue);
    EXPECT_THROW(gemm_on_host_memory(arrays.problem(), {}, 5), DeviceError);
    EXPECT_EQ(fake["fake_streams"], 0);
    EXPECT_TRUE(arrays.d_is_untouched());
  });
}

}  // namespace
}  // namespace fastgemm

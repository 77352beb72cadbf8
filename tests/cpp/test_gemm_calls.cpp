// gemm(), warm_up() and PreparedGemm over a fake driver: what is launched where, captures,
// strictness.
#include <gtest/gtest.h>

#include <vector>

#include "fake_driver.hpp"
#include "fastgemm/gemm.hpp"

namespace fastgemm {
namespace {

using test::FakeDriver;

// Two matrices of ones (fp16) and the memory for float32 products.
struct Product {
  static constexpr int m = 8, n = 16, k = 32;
  std::vector<std::uint16_t> a = std::vector<std::uint16_t>(m * k, 0x3c00);
  std::vector<std::uint16_t> b = std::vector<std::uint16_t>(n * k, 0x3c00);
  std::vector<float> d = std::vector<float>(m * n, -1.0f);

  GemmProblem problem() {
    GemmProblem p = packed_problem(m, n, k, DType::f16, "nt", 1, DType::f32);
    p.a.data = a.data();
    p.b.data = b.data();
    p.d.data = d.data();
    return p;
  }
  bool all(float value) const { return d == std::vector<float>(m * n, value); }
};

class GemmCalls : public ::testing::Test {
 protected:
  template <typename Body>
  void with_fake(Body body) {
    NEED_NVRTC();
    const std::string library = test::fake_libcuda();
    if (library.empty()) GTEST_SKIP() << "no compiler to build the fake driver with";
    test::in_child(
        {{"FASTGEMM_NVRTC", test::nvrtc_paths().front()}, {"FASTGEMM_CACHE_DIR", cache_.path()}},
        [&] {
          const FakeDriver fake(library);
          fake["fake_computes"] = 1;
          body(fake);
          EXPECT_EQ(fake["fake_pushed"], 0) << "the caller's context is current again";
        });
  }

  test::TempFolder cache_;
};

Stream stream_named(std::uintptr_t handle) { return reinterpret_cast<Stream>(handle); }

TEST_F(GemmCalls, PreparedOnesComputeWhatTheMemoryHoldsOnTheStreamOfEachLaunch) {
  with_fake([](const FakeDriver& fake) {
    Product x;
    const PreparedGemm prepared(x.problem());
    EXPECT_EQ(fake["fake_launches"], 0);
    prepared.launch(stream_named(0x70));
    EXPECT_TRUE(x.all(32));
    EXPECT_EQ(fake.operator[]<Stream>("fake_stream"), stream_named(0x70));
    x.a.assign(x.a.size(), 0x4000);
    prepared.launch(stream_named(0x80));
    EXPECT_TRUE(x.all(64));
    EXPECT_EQ(fake.operator[]<Stream>("fake_stream"), stream_named(0x80));
    EXPECT_EQ(fake["fake_launches"], 2);
    EXPECT_EQ(fake["fake_loads"], 1);
  });
}

TEST_F(GemmCalls, PreparedOnesKeepTheirKernel) {
  with_fake([](const FakeDriver& fake) {
    Product x;
    const PreparedGemm prepared(x.problem());
    clear_cache();
    EXPECT_EQ(fake["fake_unloads"], 0);
    prepared.launch();
    EXPECT_TRUE(x.all(32));
  });
}

TEST_F(GemmCalls, PreparedOnesTakeOtherMemoryOfTheSameAlignment) {
  with_fake([](const FakeDriver&) {
    Product x, y;
    PreparedGemm prepared(x.problem());
    const PreparedGemm before = prepared;
    y.b.assign(y.b.size(), 0x4000);
    prepared.rebind(x.a.data(), y.b.data(), nullptr, y.d.data());
    prepared.launch();
    EXPECT_TRUE(x.all(-1));
    EXPECT_TRUE(y.all(64));
    EXPECT_THROW(prepared.rebind(x.a.data(), x.b.data() + 1, nullptr, x.d.data()), InvalidValue);
    EXPECT_THROW(prepared.rebind(x.d.data(), x.b.data(), nullptr, x.d.data()), InvalidValue);
    before.launch();
    EXPECT_TRUE(x.all(32)) << "a copy stays what it was";
  });
}

TEST_F(GemmCalls, EmptyOnesPrepareAndLaunchNothing) {
  with_fake([](const FakeDriver& fake) {
    GemmProblem empty = packed_problem(0, 4, 4, DType::f16);
    PreparedGemm prepared(empty);
    prepared.launch();
    prepared.rebind(nullptr, nullptr, nullptr, nullptr);
    warm_up(empty);
    EXPECT_EQ(fake["fake_retains"], 0);
  });
}

TEST_F(GemmCalls, AColdCallInACaptureIsRefusedAndTheNextOneOutsideWorks) {
  with_fake([](const FakeDriver& fake) {
    Product x;
    fake["fake_capturing"] = 1;
    EXPECT_THROW(gemm(x.problem(), stream_named(0x70)), ColdCallError);
    EXPECT_EQ(fake["fake_loads"] + fake["fake_launches"] + fake["fake_synchronizations"], 0);
    EXPECT_TRUE(x.all(-1));
    fake["fake_capturing"] = 0;
    gemm(x.problem(), stream_named(0x70));
    EXPECT_TRUE(x.all(32));
  });
}

TEST_F(GemmCalls, AWarmedCallIsCapturedAndItsKernelStaysLoaded) {
  with_fake([](const FakeDriver& fake) {
    Product x;
    warm_up(x.problem());
    EXPECT_EQ(fake["fake_launches"], 0);
    fake["fake_capturing"] = 1;
    gemm(x.problem(), stream_named(0x70));
    fake["fake_capturing"] = 0;
    EXPECT_EQ(fake["fake_launches"], 1);
    EXPECT_EQ(fake["fake_loads"], 1);
    clear_cache();
    EXPECT_EQ(fake["fake_unloads"], 0);
  });
}

TEST_F(GemmCalls, StrictOnesLoadButDoNotCompile) {
  with_fake([](const FakeDriver& fake) {
    Product x;
    set_strict(true);
    EXPECT_THROW(gemm(x.problem()), ColdCallError);
    EXPECT_EQ(cache_info().compiles, 0);
    EXPECT_EQ(fake["fake_loads"], 0);
    warm_up(x.problem());
    gemm(x.problem());
    EXPECT_TRUE(x.all(32));
    clear_cache();
    EXPECT_NO_THROW(gemm(x.problem())) << "from the disk cache";
    EXPECT_EQ(cache_info().compiles, 1);
  });
}

}  // namespace
}  // namespace fastgemm

// Loading and unloading: once for all threads, machine code only, and never under a running or
// captured kernel.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "fake_driver.hpp"
#include "fastgemm/error.hpp"
#include "fastgemm/gemm.hpp"
#include "loaded_kernel.hpp"

namespace fastgemm {
namespace {

using test::FakeDriver;

Plan plan_of(int block_m, const DeviceContext& device) {
  GemmConfig config;
  config.family = Family::sm80;
  config.block_m = block_m;
  config.block_n = 64;
  config.block_k = 32;
  config.warp_m = 32;
  config.warp_n = 32;
  config.num_stages = 2;
  return plan(packed_problem(256, 256, 256, DType::f16), device.hardware, config);
}

class LoadedKernels : public ::testing::Test {
 protected:
  void SetUp() override {
    NEED_NVRTC();
    library_ = test::fake_libcuda();
    if (library_.empty()) GTEST_SKIP() << "no compiler to build the fake driver with";
  }

  template <typename Body>
  void with_fake(Body body, const std::string& capacity = "256") {
    test::in_child({{"FASTGEMM_NVRTC", test::nvrtc_paths().front()},
                    {"FASTGEMM_CACHE_DIR", cache_.path()},
                    {"FASTGEMM_CACHE_KERNELS", capacity}},
                   [&] {
                     const FakeDriver fake(library_);
                     body(fake, device_context(0));
                     EXPECT_EQ(fake["fake_unloads_before_synchronization"], 0);
                     EXPECT_EQ(fake["fake_pushed"], 0);
                     EXPECT_EQ(fake["fake_capture_mode"], 0);
                   });
  }

  test::TempFolder cache_;
  std::string library_;
};

TEST_F(LoadedKernels, AreLoadedOnceFromMachineCodeHoweverManyThreadsAsk) {
  with_fake([](const FakeDriver& fake, const DeviceContext& device) {
    const Plan plan = plan_of(64, device);
    std::vector<std::thread> threads;
    for (int t = 0; t < 32; ++t) threads.emplace_back([&] { load_kernel(plan, device); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fake["fake_loads"], 1);
    EXPECT_EQ(cache_info().compiles, 1);
    EXPECT_EQ(cache_info().hits, 31);
    EXPECT_EQ(cache_info().misses, 1);
    EXPECT_EQ(std::string(&fake.operator[]<char>("fake_image"), 4),
              "\x7f"
              "ELF");
    EXPECT_EQ(fake["fake_load_mode"], CU_STREAM_CAPTURE_MODE_RELAXED);
    const auto kernel = load_kernel(plan, device);
    EXPECT_EQ(kernel->threads, plan.threads);
    EXPECT_EQ(kernel->occupancy, 2);
  });
}

TEST_F(LoadedKernels, ClearingUnloadsAfterASynchronisationAndSparesThoseInUse) {
  with_fake([](const FakeDriver& fake, const DeviceContext& device) {
    auto held = load_kernel(plan_of(64, device), device);
    load_kernel(plan_of(128, device), device);
    clear_cache();
    EXPECT_EQ(fake["fake_unloads"], 1);
    EXPECT_EQ(fake["fake_synchronizations"], 1);
    held.reset();
    EXPECT_EQ(fake["fake_unloads"], 1) << "dropping a kernel calls no driver";
    clear_cache();
    EXPECT_EQ(fake["fake_unloads"], 2);
    EXPECT_EQ(cache_info().loaded, 0);
  });
}

TEST_F(LoadedKernels, ACapturedOneIsNeverUnloaded) {
  with_fake([](const FakeDriver& fake, const DeviceContext& device) {
    load_kernel(plan_of(64, device), device)->captured = true;
    clear_cache();
    EXPECT_EQ(fake["fake_unloads"], 0);
  });
}

TEST_F(LoadedKernels, WhatCannotBeSynchronisedStaysLoaded) {
  with_fake([](const FakeDriver& fake, const DeviceContext& device) {
    load_kernel(plan_of(64, device), device);
    fake["fake_synchronize"] = CUDA_ERROR_ILLEGAL_ADDRESS;
    EXPECT_NO_THROW(clear_cache());
    EXPECT_EQ(fake["fake_unloads"], 0);
  });
}

TEST_F(LoadedKernels, EvictedOnesAreUnloadedInGroupsAndNotDuringACapture) {
  with_fake(
      [](const FakeDriver& fake, const DeviceContext& device) {
        const Plan plans[] = {plan_of(64, device), plan_of(128, device)};
        for (int i = 0; i < 16; ++i) load_kernel(plans[i % 2], device);
        EXPECT_EQ(cache_info().loaded, 1);
        EXPECT_EQ(cache_info().evictions, 15);
        EXPECT_EQ(fake["fake_unloads"], 0);
        load_kernel(plans[1], device, Effort::none);
        EXPECT_EQ(fake["fake_synchronizations"], 0);
        load_kernel(plans[0], device);
        EXPECT_EQ(fake["fake_synchronizations"], 1);
        EXPECT_EQ(fake["fake_unloads"], 16);
        EXPECT_EQ(cache_info().compiles, 2) << "compiled code is kept";
      },
      "1");
}

TEST_F(LoadedKernels, AreRefusedWhereTheyWouldTakeMoreThanTheCallMayDo) {
  with_fake([](const FakeDriver& fake, const DeviceContext& device) {
    const Plan plan = plan_of(64, device);
    for (const Effort effort : {Effort::load, Effort::none}) {
      try {
        load_kernel(plan, device, effort);
        FAIL() << "no error";
      } catch (const ColdCallError& error) {
        const std::string what = error.what();
        for (const std::string& part : {std::string("256x256x256 nt float16"), plan.kernel.str(),
                                        std::string("PreparedGemm")})
          EXPECT_NE(what.find(part), std::string::npos) << part << " in: " << what;
      }
    }
    EXPECT_EQ(fake["fake_loads"], 0);
    compile(plan);
    EXPECT_THROW(load_kernel(plan, device, Effort::none), ColdCallError);
    const auto kernel = load_kernel(plan, device, Effort::load);
    EXPECT_EQ(load_kernel(plan, device, Effort::none), kernel);
    EXPECT_EQ(fake["fake_loads"], 1);
    clear_cache();
    EXPECT_NO_THROW(load_kernel(plan, device, Effort::load)) << "the disk cache counts as compiled";
    EXPECT_EQ(cache_info().compiles, 1);
  });
}

TEST_F(LoadedKernels, AFailingLoadNamesKernelDeviceAndBothVersionsAndIsNotCached) {
  with_fake([](const FakeDriver& fake, const DeviceContext& device) {
    const Plan plan = plan_of(64, device);
    fake["fake_load"] = CUDA_ERROR_NO_BINARY_FOR_GPU;
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        load_kernel(plan, device);
        FAIL() << "no error";
      } catch (const DeviceError& error) {
        const std::string what = error.what();
        EXPECT_EQ(error.code, 209);
        for (const std::string& part :
             {std::string("cuModuleLoadData"), plan.kernel.str(), std::string("sm_90"),
              std::string("by NVRTC "), std::string("device 0 (NVIDIA H200)"),
              std::string("supports CUDA 13.0")})
          EXPECT_NE(what.find(part), std::string::npos) << part << " in: " << what;
      }
    }
    fake["fake_load"] = 0;
    fake["fake_occupancy"] = 0;
    EXPECT_THROW(load_kernel(plan, device), DeviceError);
    fake["fake_occupancy"] = 1;
    EXPECT_EQ(load_kernel(plan, device)->occupancy, 1);
  });
}

TEST_F(LoadedKernels, VerboseReportsCompileAndLoadOnceWithTheNumbers) {
  with_fake([](const FakeDriver&, const DeviceContext& device) {
    std::vector<std::string> messages;
    set_log_hook([&](LogLevel, const std::string& message) { messages.push_back(message); });
    set_verbose(true);
    const Plan plan = plan_of(64, device);
    for (int i = 0; i < 3; ++i) load_kernel(plan, device);
    set_verbose(false);
    set_log_hook({});
    ASSERT_EQ(messages.size(), 2u);
    for (const std::string& part : {plan.kernel.str(), std::string("registers"),
                                    std::string("shared memory"), std::string(" ms")}) {
      EXPECT_NE(messages[0].find(part), std::string::npos) << part << " in: " << messages[0];
      EXPECT_NE(messages[1].find(part), std::string::npos) << part << " in: " << messages[1];
    }
    EXPECT_EQ(messages[0].rfind("compiled: ", 0), 0u) << messages[0];
    EXPECT_NE(messages[1].find("occupancy 2 CTAs per SM"), std::string::npos) << messages[1];
  });
}

}  // namespace
}  // namespace fastgemm

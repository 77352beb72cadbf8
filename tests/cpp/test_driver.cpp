// The driver stage: no driver, an unusable one, its devices and contexts, and what its errors say.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "driver.hpp"
#include "fake_driver.hpp"
#include "fastgemm/error.hpp"
#include "fastgemm/gemm.hpp"

namespace fastgemm {
namespace {

using test::FakeDriver;
using test::in_child;

template <typename Call>
DeviceError error_of(Call call) {
  try {
    call();
  } catch (const DeviceError& error) {
    return error;
  }
  return DeviceError("no error");
}

void expect_parts(const DeviceError& error, const std::vector<std::string>& parts) {
  const std::string what = error.what();
  for (const std::string& part : parts)
    EXPECT_NE(what.find(part), std::string::npos) << part << " in: " << what;
}

class Driver : public ::testing::Test {
 protected:
  void SetUp() override {
    library_ = test::fake_libcuda();
    if (library_.empty()) GTEST_SKIP() << "no compiler to build the fake driver with";
  }

  template <typename Body>
  void with_fake(Body body) {
    in_child({}, [&] {
      const FakeDriver fake(library_);
      body(fake);
    });
  }

  std::string library_;
};

TEST(DriverMissing, IsATypedErrorWithReasonAndNotACrash) {
  if (::dlopen("libcuda.so.1", RTLD_LAZY)) GTEST_SKIP() << "this machine has a driver";
  in_child({}, [] {
    for (int attempt = 0; attempt < 3; ++attempt)
      expect_parts(error_of([] { driver(); }), {"no CUDA driver", "libcuda.so.1", "gemm needs"});
    EXPECT_FALSE(driver_info().available);
    EXPECT_EQ(driver_info().version, "");
    EXPECT_NE(driver_info().reason.find("libcuda.so.1"), std::string::npos);
    EXPECT_TRUE(devices().empty());
    EXPECT_EQ(driver_version(), 0);
    EXPECT_THROW(device_context(0), DeviceError);
  });
}

TEST_F(Driver, ThatShowsNoGpuIsATypedErrorAndMayRecover) {
  with_fake([](const FakeDriver& fake) {
    fake["fake_init"] = CUDA_ERROR_NO_DEVICE;
    const DeviceError error = error_of([] { driver(); });
    expect_parts(error, {"cuInit", "error 100", "CUDA_VISIBLE_DEVICES"});
    EXPECT_EQ(error.code, 100);
    EXPECT_TRUE(devices().empty());
    EXPECT_FALSE(driver_info().available);
    EXPECT_EQ(driver_info().version, "13.0");
    fake["fake_init"] = 0;
    fake["fake_devices"] = 0;
    expect_parts(error_of([] { driver(); }), {"shows no GPU"});
    fake["fake_devices"] = 1;
    EXPECT_TRUE(driver_info().available);
    EXPECT_EQ(devices().size(), 1u);
  });
}

TEST_F(Driver, ThatIsTooOldIsNamedWithBothVersions) {
  with_fake([](const FakeDriver& fake) {
    fake["fake_version"] = 11080;
    expect_parts(error_of([] { driver(); }), {"too old", "11.8", "12.0"});
  });
}

TEST_F(Driver, ThatLacksAnEntryIsTooOld) {
  library_ = test::fake_libcuda("-DcuStreamIsCapturing=renamed");
  with_fake([](const FakeDriver&) {
    expect_parts(error_of([] { driver(); }), {"too old", "no cuStreamIsCapturing", "12.0"});
  });
}

TEST_F(Driver, ThatIsTheToolkitsStubSaysSo) {
  with_fake([](const FakeDriver& fake) {
    fake["fake_init"] = CUDA_ERROR_STUB_LIBRARY;
    expect_parts(error_of([] { driver(); }), {"stub", "LD_LIBRARY_PATH"});
  });
}

TEST_F(Driver, DeviceSaysWhatItCanAndTheTableTheRest) {
  with_fake([](const FakeDriver& fake) {
    const HardwareSpec spec = devices().at(0);
    EXPECT_EQ(spec.arch.cc, 90);
    EXPECT_EQ(spec.name, "NVIDIA H200");
    EXPECT_EQ(spec.device, 0);
    EXPECT_EQ(spec.sms, 131);
    EXPECT_DOUBLE_EQ(spec.clock_ghz, hardware("H200").clock_ghz) << "not the 1.98 of the driver";
    EXPECT_EQ(spec.l2_bytes, 60 << 20);
    EXPECT_EQ(spec.arch.shared_per_block, 227 << 10);
    EXPECT_EQ(spec.arch.registers_per_sm, 65536) << "0 from the device stays the table's";
    EXPECT_DOUBLE_EQ(spec.dram_gbps, hardware("H200").dram_gbps);
    EXPECT_EQ(fake["fake_retains"], 0) << "listing devices creates no context";

    fake.operator[]<const char*>("fake_name") = "NVIDIA H299";
    EXPECT_NEAR(devices().at(0).dram_gbps, 2 * 3.201 * 6144 / 8, 0.1) << "bus times clock";
    EXPECT_DOUBLE_EQ(devices().at(0).clock_ghz, 1.98);
  });
}

TEST_F(Driver, UnsupportedGpuIsPassedOverInListsAndNamedWhenAskedFor) {
  with_fake([](const FakeDriver& fake) {
    fake["fake_cc"] = 61;
    fake.operator[]<const char*>("fake_name") = "NVIDIA GeForce GTX 1080";
    EXPECT_TRUE(devices().empty());
    expect_parts(error_of([] { device_context(0); }), {"device 0", "GTX 1080", "6.1"});
  });
}

TEST_F(Driver, ContextIsRetainedOnceForAllThreads) {
  with_fake([](const FakeDriver& fake) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 16; ++t) threads.emplace_back([] { device_context(0); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(fake["fake_retains"], 1);
    for (const int ordinal : {-1, 1, 7, 1000})
      expect_parts(error_of([&] { device_context(ordinal); }),
                   {"no device " + std::to_string(ordinal), "1 GPU"});
  });
}

TEST_F(Driver, ScopedContextIsPushedOnlyWhereNeededAndRestored) {
  with_fake([](const FakeDriver& fake) {
    const DeviceContext& device = device_context(0);
    EXPECT_EQ(current_device(), 0);
    {
      const ScopedContext outer(device);
      EXPECT_EQ(fake["fake_pushed"], 1);
      const ScopedContext inner(device);
      EXPECT_EQ(fake["fake_pushed"], 1);
    }
    EXPECT_EQ(fake["fake_pushed"], 0);
    {
      const RelaxedCapture relaxed;
      EXPECT_EQ(fake["fake_capture_mode"], CU_STREAM_CAPTURE_MODE_RELAXED);
    }
    EXPECT_EQ(fake["fake_capture_mode"], CU_STREAM_CAPTURE_MODE_GLOBAL);
  });
}

TEST_F(Driver, ErrorsNameCallCodeContextAndTheWayOut) {
  with_fake([](const FakeDriver& fake) {
    fake["fake_version"] = 12020;
    driver();
    const auto error = [](CUresult code) {
      return error_of([&] { check(code, "cuSomething", "kernel x on device 0"); });
    };
    EXPECT_NO_THROW(check(CUDA_SUCCESS, "cuSomething"));
    expect_parts(error(CUDA_ERROR_INVALID_VALUE), {"cuSomething", "error 1 ", "CUDA_ERROR_FAKE",
                                                   "a fake error", "kernel x on device 0"});
    EXPECT_EQ(error(CUDA_ERROR_INVALID_VALUE).code, 1);
    for (const CUresult sticky : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED,
                                  CUDA_ERROR_MISALIGNED_ADDRESS, CUDA_ERROR_ILLEGAL_INSTRUCTION})
      expect_parts(error(sticky), {"sticky", "earlier", "Restart the process"});
    expect_parts(error(CUDA_ERROR_UNSUPPORTED_PTX_VERSION), {"CUDA 12.2", "update the driver"});
    expect_parts(error(CUDA_ERROR_NOT_INITIALIZED), {"forked", "spawn"});
    EXPECT_FALSE(is_sticky(CUDA_ERROR_OUT_OF_MEMORY));
  });
}

}  // namespace
}  // namespace fastgemm

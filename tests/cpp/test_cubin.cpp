// read_cubin: against what ptxas itself says, for each NVRTC and target; damaged cubins are errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "cubin.hpp"
#include "fastgemm/error.hpp"
#include "nvrtc.hpp"
#include "support.hpp"

namespace fastgemm {
namespace {

// All in child processes: an NVRTC that is loaded once stays so, and other tests look for it.

// `plain` keeps nothing in memory; `spilling` has 64 live values and 32 registers; `other` is there
// to be mistaken for them.
constexpr const char* source = R"(
extern "C" __global__ void other(float* x) { x[threadIdx.x] = 1; }
extern "C" __global__ void plain(const float* x, float* y) {
  __shared__ float tile[300];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[299 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(const float* x, float* y, int n) {
  float v[64];
#pragma unroll
  for (int i = 0; i < 64; ++i) v[i] = x[i * n + threadIdx.x];
  for (int k = 0; k < n; ++k) {
#pragma unroll
    for (int i = 0; i < 64; ++i) v[i] = v[i] * v[(i + 7) % 64] + x[k];
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) y[i * n + threadIdx.x] = v[i];
}
)";

struct PtxasSays {
  int registers = -1, stack = -1, shared = 0;
};

// The number before `what`, from `at` on.
int number_before(const std::string& log, const char* what, std::size_t at, std::size_t end) {
  const std::size_t found = log.find(what, at);
  if (found >= end) return -1;
  return std::atoi(log.c_str() + log.rfind(' ', found - 1));
}

PtxasSays read_log(const std::string& log, const std::string& kernel) {
  PtxasSays says;
  const std::size_t at = log.find("Function properties for " + kernel + "\n");
  if (at == std::string::npos) return says;
  const std::size_t end = std::min(log.find("Compiling entry", at), log.size());
  says.stack = number_before(log, " bytes stack frame", at, end);
  says.registers = number_before(log, " registers", at, end);
  says.shared = std::max(0, number_before(log, " bytes smem", at, end));
  return says;
}

Nvrtc::Result compile_for(const Nvrtc& nvrtc, int cc) {
  return nvrtc.compile("test.cu", source, {},
                       {"-std=c++17", "-arch=sm_" + std::to_string(cc), "--ptxas-options=-v"},
                       Nvrtc::Output::cubin);
}

std::string cubin_of(const Nvrtc::Result& result) {
  return {result.code.begin(), result.code.end()};
}

TEST(Cubin, AgreesWithPtxasOnEveryTargetOfEveryNvrtc) {
  NEED_NVRTC();
  test::in_child({}, [] {
    for (const std::string& path : test::nvrtc_paths()) {
      const Nvrtc nvrtc(path, "test");
      for (const int cc : nvrtc.archs()) {
        if (cc < 70) continue;
        SCOPED_TRACE("NVRTC " + nvrtc.version() + ", sm_" + std::to_string(cc));
        const Nvrtc::Result result = compile_for(nvrtc, cc);
        const std::string cubin = cubin_of(result);
        for (const char* kernel : {"other", "plain", "spilling"}) {
          SCOPED_TRACE(kernel);
          const PtxasSays expected = read_log(result.log, kernel);
          ASSERT_GT(expected.registers, 0) << result.log;
          const CubinResources resources = read_cubin(cubin, kernel);
          EXPECT_EQ(resources.registers, expected.registers);
          EXPECT_EQ(resources.local_bytes, expected.stack);
          EXPECT_EQ(resources.static_shared_bytes, expected.shared);
        }
        EXPECT_EQ(read_cubin(cubin, "plain").static_shared_bytes, 1200);
        EXPECT_EQ(read_cubin(cubin, "plain").local_bytes, 0);
        EXPECT_GT(read_cubin(cubin, "spilling").local_bytes, 0);
      }
    }
  });
}

TEST(Cubin, AnUnknownKernelIsAnErrorThatNamesIt) {
  NEED_NVRTC();
  test::in_child({}, [] {
    const Nvrtc nvrtc(test::nvrtc_paths().front(), "test");
    const std::string cubin = cubin_of(compile_for(nvrtc, 80));
    try {
      read_cubin(cubin, "plai");
      FAIL() << "no error";
    } catch (const CompileError& error) {
      EXPECT_NE(std::string(error.what()).find("plai"), std::string::npos);
    }
  });
}

// Never a crash or a read outside (AddressSanitizer looks on: the bytes are an exact allocation).
TEST(Cubin, DamageIsAnErrorOrHarmless) {
  NEED_NVRTC();
  test::in_child({}, [] {
    const Nvrtc nvrtc(test::nvrtc_paths().front(), "test");
    const std::string good = cubin_of(compile_for(nvrtc, 80));
    const auto parse = [](const std::string& bytes) {
      const std::vector<char> exact(bytes.begin(), bytes.end());
      try {
        read_cubin({exact.data(), exact.size()}, "plain");
        return true;
      } catch (const CompileError&) {
        return false;
      }
    };
    ASSERT_TRUE(parse(good));
    EXPECT_FALSE(parse(""));
    EXPECT_FALSE(
        parse("not an ELF file, but long enough to hold its header: " + std::string(64, 'x')));
    for (std::size_t size = 0; size < good.size(); size += 1 + size / 64)
      EXPECT_FALSE(parse(good.substr(0, size))) << "cut to " << size << " of " << good.size();
    std::mt19937 random(7);
    for (int round = 0; round < 3000; ++round) {
      std::string bad = good;
      for (int i = 0; i < 1 + round % 8; ++i)
        bad[random() % bad.size()] = static_cast<char>(random());
      parse(bad);
    }
    for (std::size_t byte = 0; byte < 64; ++byte) {
      for (const char value : {'\0', '\x7f', '\xff'}) {
        std::string bad = good;
        bad[byte] = value;
        parse(bad);
      }
    }
  });
}

}  // namespace
}  // namespace fastgemm

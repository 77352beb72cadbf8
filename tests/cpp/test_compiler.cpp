// The compiler stage: targets, keys, once-per-key compiles through the disk cache, and failures as
// the user sees them.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <atomic>
#include <set>
#include <thread>

#include "cache.hpp"
#include "compiler.hpp"
#include "fastgemm/error.hpp"
#include "fastgemm/gemm.hpp"
#include "support.hpp"

namespace fastgemm {
namespace {

using test::files_in;
using test::in_child;
using test::TempFolder;
namespace fs = std::filesystem;

const std::string nvrtc_12_9 = "12.9";
const std::vector<int> archs_12_9 = {50, 52, 53, 60, 61,  62,  70,  72,  75, 80,
                                     86, 87, 89, 90, 100, 101, 103, 120, 121};
const std::vector<int> archs_13_0 = {75, 80, 86, 87, 88, 89, 90, 100, 103, 110, 120, 121};

std::string refusal(int cc, const std::vector<int>& supported, bool exact = false) {
  try {
    const int picked = pick_target(cc, supported, nvrtc_12_9, exact);
    return "picked " + std::to_string(picked);
  } catch (const CompileError& error) {
    return error.what();
  }
}

TEST(PickTarget, TakesTheGpuItselfWhereNvrtcKnowsIt) {
  for (const int cc : {70, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121})
    EXPECT_EQ(pick_target(cc, archs_12_9, nvrtc_12_9), cc);
  for (const int cc : {75, 80, 86, 87, 89, 90, 100, 103, 110, 120, 121})
    EXPECT_EQ(pick_target(cc, archs_13_0, "13.0"), cc);
}

TEST(PickTarget, TakesTheNearestOlderOneOfTheSameMajor) {
  EXPECT_EQ(pick_target(89, {75, 80, 86, 87, 90}, "11.7"), 86);
  EXPECT_EQ(pick_target(89, {75, 80, 90}, "11.7"), 80);
  EXPECT_EQ(pick_target(86, {70, 75, 80}, "11.0"), 80);
  EXPECT_EQ(pick_target(103, {90, 100, 120}, "12.8"), 100);
  EXPECT_EQ(pick_target(121, {90, 100, 120}, "12.8"), 120);
  EXPECT_EQ(pick_target(75, {70, 72, 80}, "9.0"), 70);
}

TEST(PickTarget, NeverCrossesMajorsNorToOrFromAnSoc) {
  for (const auto& [cc, supported] : std::vector<std::pair<int, std::vector<int>>>{
           {90, {75, 80, 86, 89, 100}},  // another major
           {100, {90, 120}},
           {130, archs_12_9},
           {70, archs_13_0},
           {87, {80, 86, 89}},   // Orin takes no desktop code
           {110, {100, 103}},    // nor Thor
           {75, {72, 80}},       // nor a desktop GPU that of an SoC
           {80, {86, 87, 89}}})  // newer code
    EXPECT_NE(refusal(cc, supported).find("cannot compile for compute capability"),
              std::string::npos)
        << cc << ": " << refusal(cc, supported);
}

TEST(PickTarget, AFamilyOfOneChipGetsThatChipOrNothing) {
  EXPECT_EQ(pick_target(90, archs_12_9, nvrtc_12_9, true), 90);
  EXPECT_NE(refusal(103, {90, 100, 120}, true).find("cannot compile"), std::string::npos);
}

TEST(PickTarget, TheRefusalNamesGpuNvrtcSupportedTargetsAndTheWayOut) {
  const std::string newer = refusal(130, archs_12_9);
  for (const char* part : {"13.0", "sm_130", "NVRTC 12.9", "sm_50, ", "sm_121", "pip install -U"})
    EXPECT_NE(newer.find(part), std::string::npos) << part << " in: " << newer;
  const std::string dropped = refusal(70, archs_13_0);
  for (const char* part : {"7.0", "sm_70", "sm_75", "nvidia-cuda-nvrtc-cu12"})
    EXPECT_NE(dropped.find(part), std::string::npos) << part << " in: " << dropped;
}

TEST(CacheKey, ChangesWithEverythingThatTheCodeDependsOn) {
  const std::vector<std::string> options = {"-std=c++17"};
  const std::set<std::string> keys = {
      cache_key("source", "headers", "nvrtc", options, "sm_90"),
      cache_key("source2", "headers", "nvrtc", options, "sm_90"),
      cache_key("source", "headers2", "nvrtc", options, "sm_90"),
      cache_key("source", "headers", "nvrtc2", options, "sm_90"),
      cache_key("source", "headers", "nvrtc", {"-std=c++17", "-DX"}, "sm_90"),
      cache_key("source", "headers", "nvrtc", options, "sm_86"),
      cache_key("source", "headers", "nvrtc", options, "sm_90a")};
  EXPECT_EQ(keys.size(), 7u);
}

TEST(CacheKey, ChangesWithOneByteOfAnyHeaderAndNotWithItsFolder) {
  TempFolder temp;
  const auto header_hash = [&](const std::string& folder) {
    return read_header_folder(temp / folder).hash;
  };
  test::write(temp / "a/fastgemm/device/x.cuh", "constexpr int x = 1;");
  test::write(temp / "a/fastgemm/device/ptx/y.cuh", "constexpr int y = 1;");
  fs::create_directories(temp / "moved");
  fs::copy(temp / "a", temp / "moved/elsewhere", fs::copy_options::recursive);
  EXPECT_EQ(header_hash("a"), header_hash("moved/elsewhere"));
  test::write(temp / "moved/elsewhere/fastgemm/device/ptx/y.cuh", "constexpr int y = 2;");
  EXPECT_NE(header_hash("a"), header_hash("moved/elsewhere"));
}

// The library in a child process that uses one NVRTC and one cache folder.
class Compile : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    NEED_NVRTC();
    if (GetParam() >= static_cast<int>(test::nvrtc_paths().size()))
      GTEST_SKIP() << "fewer NVRTC wheels are installed";
    environment_ = {{"FASTGEMM_NVRTC", test::nvrtc_paths()[GetParam()]},
                    {"FASTGEMM_CACHE_DIR", temp_ / "cache"},
                    {"TMPDIR", temp_.path()},
                    {"FASTGEMM_DEVICE_HEADERS", temp_ / "headers"}};
    test::write(temp_ / "headers/fastgemm/device/scale.cuh", "#define SCALE 2.0f\n");
  }

  TempFolder temp_;
  test::Environment environment_;
  const std::string source_ =
      "#include \"fastgemm/device/scale.cuh\"\n"
      "extern \"C\" __global__ void scale(float* x) {\n"
      "  __shared__ float y[64];\n"
      "  y[threadIdx.x] = x[threadIdx.x];\n"
      "  __syncthreads();\n"
      "  x[threadIdx.x] = SCALE * y[63 - threadIdx.x];\n"
      "}\n";
};

INSTANTIATE_TEST_SUITE_P(EachNvrtc, Compile, ::testing::Values(0, 1));

TEST_P(Compile, GivesMachineCodeWithItsResources) {
  in_child(environment_, [&] {
    for (const int cc : {75, 80, 86, 90, 100, 120}) {
      const auto kernel = compile_source("scale", source_, cc, 1000);
      EXPECT_EQ(kernel->target, "sm_" + std::to_string(cc));
      EXPECT_EQ(kernel->nvrtc_version, nvrtc_info().version);
      EXPECT_GT(kernel->registers, 0);
      EXPECT_EQ(kernel->spill_bytes, 0);
      EXPECT_EQ(kernel->shared_bytes, 64 * 4 + 1000);
      EXPECT_GT(kernel->compile_ms, 0);
      EXPECT_FALSE(kernel->from_disk);
      ASSERT_GT(kernel->cubin.size(), 4u);
      EXPECT_EQ(std::string(kernel->cubin.begin() + 1, kernel->cubin.begin() + 4), "ELF");
      EXPECT_NE(kernel->ptx().find(".visible .entry scale("), std::string::npos);
    }
  });
}

TEST_P(Compile, ThirtyTwoThreadsCompileOnce) {
  in_child(environment_, [&] {
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 32; ++t)
      threads.emplace_back([&, t] {
        const int cc = t % 2 ? 80 : 90;
        if (compile_source("scale", source_, cc, 0)->target != "sm_" + std::to_string(cc)) ++failed;
      });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(compile_counts().compiles, 2);
  });
}

TEST_P(Compile, AnotherProcessFindsItOnDiskAndTheSameCode) {
  const auto counts_in_child = [&](int compiles, int disk_hits) {
    in_child(environment_, [&] {
      const auto kernel = compile_source("scale", source_, 90, 0);
      EXPECT_EQ(compile_counts().compiles, compiles);
      EXPECT_EQ(compile_counts().disk_hits, disk_hits);
      EXPECT_EQ(kernel->from_disk, disk_hits == 1);
      EXPECT_EQ(kernel->compile_ms == 0, disk_hits == 1);
      EXPECT_EQ(kernel->target, "sm_90");
      const fs::path code = temp_ / "code";
      const std::string cubin(kernel->cubin.begin(), kernel->cubin.end());
      if (fs::exists(code)) {
        EXPECT_EQ(test::read(code), cubin);
      }
      test::write(code, cubin);
    });
  };
  counts_in_child(1, 0);
  counts_in_child(0, 1);
  fs::rename(temp_ / "headers", temp_ / "moved");
  environment_["FASTGEMM_DEVICE_HEADERS"] = temp_ / "moved";
  fs::rename(temp_ / "cache", temp_ / "cache2");
  environment_["FASTGEMM_CACHE_DIR"] = temp_ / "cache2";
  environment_["HOME"] = "/nonexistent";
  counts_in_child(0, 1);

  for (const fs::path& file : files_in(temp_ / "cache2")) fs::resize_file(file, 100);
  counts_in_child(1, 0);
  counts_in_child(0, 1);

  test::write(temp_ / "moved/fastgemm/device/scale.cuh", "#define SCALE 3.0f\n");
  fs::remove(temp_ / "code");
  counts_in_child(1, 0);
}

TEST_P(Compile, SixteenProcessesOnOneEmptyCacheAllSucceed) {
  std::vector<pid_t> children;
  for (int p = 0; p < 16; ++p)
    children.push_back(test::start_child(
        environment_, [&] { EXPECT_GT(compile_source("scale", source_, 80, 0)->registers, 0); }));
  for (const pid_t child : children) test::expect_success_of(child);
  EXPECT_EQ(files_in(temp_ / "cache").size(), 1u);
}

TEST_P(Compile, ASyntaxErrorIsShortInItsFirstLineAndKeepsLogAndSource) {
  in_child(environment_, [&] {
    const std::string bad = "extern \"C\" __global__ void wrong(float* x) { x[0] = 1 +; }\n";
    std::string first_what;
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        compile_source("wrong", bad, 90, 0);
        FAIL() << "no error";
      } catch (const CompileError& error) {
        const std::string what = error.what(), line = what.substr(0, what.find('\n'));
        for (const std::string& part :
             {std::string("wrong"), std::string("sm_90"), "NVRTC " + nvrtc_info().version,
              std::string("expected an expression")})
          EXPECT_NE(line.find(part), std::string::npos) << part << " in: " << line;
        EXPECT_LT(line.size(), 300u);
        EXPECT_NE(error.log.find("wrong.cu(1): error"), std::string::npos) << error.log;
        EXPECT_EQ(test::read(error.source_path), bad);
        EXPECT_NE(what.find(error.source_path), std::string::npos);
        if (attempt == 0) first_what = what;
        EXPECT_EQ(what, first_what);
      }
    }
    EXPECT_TRUE(!fs::exists(temp_ / "cache") || files_in(temp_ / "cache").empty());
    EXPECT_EQ(compile_counts().compiles, 0);
    EXPECT_EQ(compile_source("scale", source_, 90, 0)->spill_bytes, 0)
        << "a good source still works";
  });
}

TEST_P(Compile, NeedsNoToolkitNoPathAndIgnoresOtherHeaders) {
  test::write(temp_ / "decoy/cuda_fp16.h", "#error decoy");
  test::write(temp_ / "decoy/fastgemm/device/scale.cuh", "#error decoy");
  environment_["CPATH"] = temp_ / "decoy";
  environment_["CPLUS_INCLUDE_PATH"] = temp_ / "decoy";
  environment_["PATH"] = "";
  environment_["CUDA_HOME"] = temp_ / "decoy";
  environment_["CUDA_PATH"] = temp_ / "decoy";
  in_child(environment_, [&] { EXPECT_GT(compile_source("scale", source_, 90, 0)->registers, 0); });
}

TEST_P(Compile, ClearingTheCacheDropsMemoryAndDisk) {
  in_child(environment_, [&] {
    const auto held = compile_source("scale", source_, 90, 0);
    const std::uint64_t generation = cache_generation();
    clear_cache();
    EXPECT_GT(cache_generation(), generation);
    EXPECT_TRUE(compile_source("scale", source_, 90, 0)->from_disk);
    clear_cache(true);
    EXPECT_EQ(cache_info().disk_files, 0);
    EXPECT_FALSE(compile_source("scale", source_, 90, 0)->from_disk);
    EXPECT_EQ(held->name, "scale");
  });
}

}  // namespace
}  // namespace fastgemm

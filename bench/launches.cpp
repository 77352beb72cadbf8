// Host time of a warm call from C++: gemm(), a prepared launch, and the driver's own launch of a
// kernel that does nothing. Prints JSON; microseconds, medians. Built and run by host_overhead.py.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fastgemm/device_memory.hpp>
#include <fastgemm/gemm.hpp>
#include <vector>

namespace {

constexpr int CALLS = 200, ROUNDS = 51;

// As many bytes of parameters as a product of family sm90 has.
const char* const EMPTY_PTX =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .align 64 .b8 p[640]) { ret; }\n";

struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

template <typename Function>
Function* find(void* library, const char* symbol) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, symbol));
  if (!function) std::exit(3);
  return function;
}

template <typename Call>
double median_us(Call call) {
  std::vector<double> samples;
  for (int round = 0; round < ROUNDS; ++round) {
    fastgemm::synchronize(nullptr, 0);
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < CALLS; ++i) call();
    const std::chrono::duration<double, std::micro> elapsed =
        std::chrono::steady_clock::now() - begin;
    samples.push_back(elapsed.count() / CALLS);
  }
  std::nth_element(samples.begin(), samples.begin() + ROUNDS / 2, samples.end());
  return samples[ROUNDS / 2];
}

}  // namespace

int main() {
  using namespace fastgemm;
  GemmProblem problem = packed_problem(64, 64, 64, DType::bf16, "nt");
  problem.a.data = allocate_on_device(1 << 16, 0);
  problem.b.data = allocate_on_device(1 << 16, 0);
  problem.d.data = allocate_on_device(1 << 16, 0);
  gemm(problem, nullptr, {}, 0);
  const PreparedGemm prepared(problem, {}, 0);

  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  void *context, *module, *empty;
  find<int(void**, int)>(driver, "cuDevicePrimaryCtxRetain")(&context, 0);
  find<int(void*)>(driver, "cuCtxSetCurrent")(context);
  if (find<int(void**, const char*)>(driver, "cuModuleLoadData")(&module, EMPTY_PTX) ||
      find<int(void**, void*, const char*)>(driver, "cuModuleGetFunction")(&empty, module, "empty"))
    return 2;
  auto* launch = find<int(const LaunchConfig*, void*, void**, void**)>(driver, "cuLaunchKernelEx");
  LaunchConfig config = {{1, 1, 1}, {32, 1, 1}, 0, nullptr, nullptr, 0};
  alignas(64) static char parameters[640];
  void* arguments[] = {parameters};

  const double bare = median_us([&] { launch(&config, empty, arguments, nullptr); });
  const double warm = median_us([&] { gemm(problem, nullptr, {}, 0); });
  const double ready = median_us([&] { prepared.launch(nullptr); });
  std::printf("{\"bare launch\": %.3f, \"gemm()\": %.3f, \"PreparedGemm\": %.3f}\n", bare, warm,
              ready);
}

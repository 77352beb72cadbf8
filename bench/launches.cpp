// Host time of a warm call from C++: gemm(), a prepared launch, and the driver's own launch of a
// kernel that does nothing. Prints JSON; microseconds, medians. Built and run by host_overhead.py.
//
// On a stream of its own, since the legacy one waits for others; and few calls between waits, so
// that the driver's queue never fills: a launch then waits for the GPU.
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fastgemm/device_memory.hpp>
#include <fastgemm/gemm.hpp>
#include <vector>

namespace {

constexpr int CALLS = 20, ROUNDS = 1001;

// The parameters of a product of family sm90: extents and strides, and three tensor maps.
const char* const EMPTY_PTX =
    ".version 7.0\n.target sm_70\n.address_size 64\n"
    ".visible .entry empty(.param .align 8 .b8 p[216], .param .align 64 .b8 a[128], "
    ".param .align 64 .b8 b[128], .param .align 64 .b8 d[128]) { ret; }\n";
constexpr unsigned THREADS = 256;

// Programmatic stream serialization: a kernel may start before the one ahead of it has ended.
struct LaunchAttribute {
  unsigned id = 6, padding = 0;
  union {
    int value = 1;
    char bytes[64];
  };
};

struct LaunchConfig {
  unsigned grid[3], block[3], shared_bytes;
  void* stream;
  LaunchAttribute* attributes;
  unsigned attribute_count;
};

template <typename Function>
Function* find(void* library, const char* symbol) {
  auto* function = reinterpret_cast<Function*>(dlsym(library, symbol));
  if (!function) std::exit(3);
  return function;
}

template <typename Call>
double median_us(fastgemm::Stream stream, Call call) {
  std::vector<double> samples;
  for (int round = 0; round < ROUNDS; ++round) {
    fastgemm::synchronize(stream, 0);
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
  Stream stream = nullptr;
  constexpr unsigned non_blocking = 1;
  if (find<int(Stream*, unsigned)>(driver, "cuStreamCreate")(&stream, non_blocking)) return 2;
  LaunchAttribute attribute;
  LaunchConfig config = {{1, 1, 1}, {THREADS, 1, 1}, 0, stream, &attribute, 1};
  alignas(64) static char parameters[216], maps[3][128];
  void* arguments[] = {parameters, maps[0], maps[1], maps[2]};

  const double bare = median_us(stream, [&] { launch(&config, empty, arguments, nullptr); });
  const double warm = median_us(stream, [&] { gemm(problem, stream, {}, 0); });
  const double ready = median_us(stream, [&] { prepared.launch(stream); });
  std::printf("{\"bare launch\": %.3f, \"gemm()\": %.3f, \"PreparedGemm\": %.3f}\n", bare, warm,
              ready);
}

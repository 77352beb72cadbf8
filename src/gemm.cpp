// THE PIPELINE: problem -> plan -> source -> cubin -> loaded kernel -> launch.
#include "fastgemm/gemm.hpp"

#include "cache.hpp"
#include "driver.hpp"
#include "launch.hpp"
#include "lru_cache.hpp"
#include "planner.hpp"

namespace fastgemm {
namespace {

// Problems with the same key run the same kernel on the same grid. Plain integers: the warm path
// looks up here.
struct LaunchKey {
  int device;
  std::int64_t batch, m, n, k;
  ProblemTraits traits;
  GemmConfig config;

  bool operator==(const LaunchKey& o) const {
    return device == o.device && batch == o.batch && m == o.m && n == o.n && k == o.k &&
           traits.code() == o.traits.code() && config == o.config;
  }
};

struct LaunchKeyHash {
  std::size_t operator()(const LaunchKey& key) const {
    std::uint64_t h = key.traits.code() ^ static_cast<std::uint64_t>(key.device) << 48;
    for (std::int64_t x : {key.batch, key.m, key.n, key.k}) {
      h = (h ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    return h;
  }
};

using Launchables = LruCache<LaunchKey, Launchable, LaunchKeyHash>;

Launchables& launchables() {
  static auto& cache = *[] {
    set_front_cache({[] { launchables().clear(); }, [] { return launchables().stats().hits; }});
    return new Launchables(4096);
  }();
  return cache;
}

struct Ready {
  std::shared_ptr<Launchable> launchable;
  std::shared_ptr<LoadedKernel> kernel;
};

// Plan -> source -> cubin -> loaded kernel. Everything behind the plan is cached by the kernel's
// constants.
Ready prepare(const GemmProblem& problem, const DeviceContext& device, const GemmConfig& config,
              Stream stream) {
  const Plan p = plan(problem, device.hardware, config);
  Ready ready;
  ready.kernel = load_kernel(p, device, is_capturing(stream));
  ready.launchable = std::make_shared<Launchable>(launchable_of(p));
  ready.launchable->kernel = ready.kernel;
  return ready;
}

Ready find_or_prepare(const LaunchKey& key, const GemmProblem& problem, const DeviceContext& device,
                      Stream stream) {
  Ready ready;
  ready.launchable = launchables().get_or_create(key, [&] {
    ready = prepare(problem, device, key.config, stream);
    return ready.launchable;
  });
  if (!ready.kernel) ready.kernel = ready.launchable->kernel.lock();
  if (!ready.kernel) ready = prepare(problem, device, key.config, stream);  // evicted meanwhile
  return ready;
}

}  // namespace

void gemm(const GemmProblem& asked, Stream stream, const GemmConfig& config, int ordinal) {
  validate(asked);
  const GemmProblem problem = canonical(asked);
  if (problem.batch == 0 || problem.m == 0 || problem.n == 0) return;
  const DeviceContext& device = device_context(ordinal < 0 ? current_device() : ordinal);
  const ScopedContext scope(device);

  const LaunchKey key = {device.ordinal, problem.batch,      problem.m, problem.n,
                         problem.k,      traits_of(problem), config};
  const Ready ready = find_or_prepare(key, problem, device, stream);

  // A graph may be replayed at any time: its kernels stay loaded.
  if (!ready.kernel->captured && is_capturing(stream)) ready.kernel->captured = true;
  launch(*ready.launchable, *ready.kernel, problem, stream);
}

}  // namespace fastgemm

// THE PIPELINE: problem -> plan -> source -> cubin -> loaded kernel -> launch.
#include "fastgemm/gemm.hpp"

#include <atomic>

#include "cache.hpp"
#include "driver.hpp"
#include "launch.hpp"
#include "lru_cache.hpp"
#include "planner.hpp"
#include "recent_products.hpp"

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
           traits == o.traits && config == o.config;
  }
};

struct LaunchKeyHash {
  std::size_t operator()(const LaunchKey& key) const {
    std::uint64_t h =
        key.traits.code() ^ static_cast<std::uint64_t>(key.device) << 48 ^ key.traits.epilogue_ids;
    for (std::int64_t x : {key.batch, key.m, key.n, key.k}) {
      h = (h ^ static_cast<std::uint64_t>(x)) * 0x9e3779b97f4a7c15u;
      h ^= h >> 32;
    }
    return h;
  }
};

using Launchables = LruCache<LaunchKey, Launchable, LaunchKeyHash>;

std::atomic<std::int64_t> recent_hits{0};

Launchables& launchables() {
  static auto& cache = *[] {
    set_front_cache({[] { launchables().clear(); },
                     [] { return launchables().stats().hits + recent_hits.load(); }});
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
              Effort effort) {
  const Plan p = plan(problem, device.hardware, config);
  Ready ready;
  ready.kernel = load_kernel(p, device, effort);
  ready.launchable = std::make_shared<Launchable>(launchable_of(p));
  ready.launchable->kernel = ready.kernel;
  return ready;
}

// `effort_of()` is asked for where nothing is ready. `problem`: canonical and not empty.
template <typename EffortOf>
Ready find_or_prepare(const GemmProblem& problem, const DeviceContext& device,
                      const GemmConfig& config, EffortOf&& effort_of) {
  const LaunchKey key = {device.ordinal, problem.batch,      problem.m, problem.n,
                         problem.k,      traits_of(problem), config};
  Ready ready;
  ready.launchable = launchables().get(key);
  if (ready.launchable) ready.kernel = ready.launchable->kernel.lock();
  if (ready.kernel) return ready;
  const Effort effort = effort_of();
  // Apart from the others: who waits for this key elsewhere must not get the capture's refusal.
  if (effort == Effort::none) return prepare(problem, device, config, effort);
  ready.launchable = launchables().get_or_create(key, [&] {
    ready = prepare(problem, device, config, effort);
    return ready.launchable;
  });
  if (!ready.kernel) ready.kernel = ready.launchable->kernel.lock();
  if (!ready.kernel) ready = prepare(problem, device, config, effort);  // evicted meanwhile
  return ready;
}

bool is_empty(const GemmProblem& problem) {
  return problem.batch == 0 || problem.m == 0 || problem.n == 0;
}

// A graph may be replayed at any time: its kernels stay loaded.
void launch_for_good(const Launchable& launchable, LoadedKernel& kernel, const GemmProblem& problem,
                     Stream stream) {
  if (!kernel.captured && is_capturing(stream)) kernel.captured = true;
  launch(launchable, kernel, problem, stream);
}

const DeviceContext& context_of(int ordinal) {
  return device_context(ordinal < 0 ? current_device() : ordinal);
}

// The warm path: a product like one that this thread computed lately, whose kernel is still loaded.
bool launch_recent(const GemmProblem& asked, Stream stream, const GemmConfig& config, int ordinal) {
  const RecentProduct* recent = find_recent(asked, config, ordinal);
  if (!recent || (ordinal < 0 && recent->device != current_device())) return false;
  const std::shared_ptr<LoadedKernel> kernel = recent->launchable->kernel.lock();
  if (!kernel) return false;
  recent_hits.fetch_add(1, std::memory_order_relaxed);
  const ScopedContext scope(kernel->device);
  launch_for_good(*recent->launchable, *kernel, recent->canonical_of(asked), stream);
  return true;
}

}  // namespace

void gemm(const GemmProblem& asked, Stream stream, const GemmConfig& config, int ordinal) {
  if (launch_recent(asked, stream, config, ordinal)) return;
  validate(asked);
  const GemmProblem problem = canonical(asked);
  if (is_empty(problem)) return;
  const DeviceContext& device = context_of(ordinal);
  const ScopedContext scope(device);
  const Ready ready = find_or_prepare(problem, device, config, [stream] {
    if (is_capturing(stream)) return Effort::none;
    return strict() ? Effort::load : Effort::compile;
  });
  remember(asked, problem, config, device.ordinal, ready.launchable);
  launch_for_good(*ready.launchable, *ready.kernel, problem, stream);
}

void warm_up(const GemmProblem& asked, const GemmConfig& config, int ordinal) {
  validate(asked);
  const GemmProblem problem = canonical(asked);
  if (is_empty(problem)) return;
  const DeviceContext& device = context_of(ordinal);
  const ScopedContext scope(device);
  find_or_prepare(problem, device, config, [] { return Effort::compile; });
}

struct PreparedGemm::State {
  const DeviceContext& device;
  Ready ready;
  GemmProblem asked;
  GemmProblem canonical;
  ProblemTraits traits;
};

PreparedGemm::PreparedGemm(const GemmProblem& asked, const GemmConfig& config, int ordinal) {
  validate(asked);
  const GemmProblem problem = canonical(asked);
  if (is_empty(problem)) return;
  const DeviceContext& device = context_of(ordinal);
  const ScopedContext scope(device);
  const Ready ready = prepare(problem, device, config, Effort::compile);
  state_ = std::make_shared<State>(State{device, ready, asked, problem, traits_of(problem)});
}

void PreparedGemm::launch(Stream stream) const {
  if (!state_) return;
  const ScopedContext scope(state_->device);
  launch_for_good(*state_->ready.launchable, *state_->ready.kernel, state_->canonical, stream);
}

void PreparedGemm::rebind(void* a, void* b, void* c, void* d,
                          std::shared_ptr<const Fusion> fusion) {
  if (!state_) return;
  auto next = std::make_shared<State>(*state_);
  next->asked.a.data = a;
  next->asked.b.data = b;
  next->asked.c.data = c;
  next->asked.d.data = d;
  if (fusion) next->asked.fusion = std::move(fusion);
  validate(next->asked);
  const GemmProblem problem = canonical(next->asked);
  if (!(traits_of(problem) == next->traits))
    throw InvalidValue("the new memory is aligned otherwise than what was prepared for " +
                       describe(problem) + "; prepare the product anew");
  next->canonical = problem;
  state_ = std::move(next);
}

}  // namespace fastgemm

// Clusters of CTAs in parallel: each worker runs one after the other, all on the same stacks.
#include "emulator/run_grid.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

namespace fastgemm::emulated {
namespace {

// Each has stacks for all threads of a cluster, of which the system does not like too many.
constexpr unsigned most_workers = 16;

}  // namespace

Counters run_grid(const Launch& launch, int workers) {
  const std::uint32_t clusters = launch.ctas / static_cast<std::uint32_t>(launch.cluster);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const unsigned wanted = workers > 0 ? static_cast<unsigned>(workers) : cores;
  std::atomic<std::uint32_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Counters total;
  std::uint32_t first_failed = clusters;
  std::exception_ptr error;

  const auto work = [&] {
    std::uint32_t cluster = 0;
    try {
      Stacks stacks(launch.threads * launch.cluster);
      World world(launch, stacks);
      while (!failed && (cluster = next++) < clusters) world.run(cluster);
      std::lock_guard<std::mutex> lock(mutex);
      total.add(world.counters());
    } catch (...) {
      failed = true;
      std::lock_guard<std::mutex> lock(mutex);
      if (!error || cluster < first_failed) {
        first_failed = cluster;
        error = std::current_exception();
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < std::min({wanted, most_workers, clusters}); ++i)
    threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) std::rethrow_exception(error);
  return total;
}

}  // namespace fastgemm::emulated

// Clusters of CTAs in parallel: each worker runs one after the other, all on the same stacks.
#include "emulator/run_grid.hpp"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <thread>

namespace fastgemm::emulated {

Counters run_grid(const Launch& launch, int workers) {
  const std::uint32_t clusters = launch.ctas / static_cast<std::uint32_t>(launch.cluster);
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const std::uint32_t wanted = workers > 0 ? static_cast<std::uint32_t>(workers) : cores;
  std::atomic<std::uint32_t> next{0};
  std::atomic<bool> failed{false};
  std::mutex mutex;
  Counters total;
  std::uint32_t first_failed = clusters;
  std::optional<EmulatorError> error;

  const auto work = [&] {
    Stacks stacks(launch.threads * launch.cluster);
    World world(launch, stacks);
    for (std::uint32_t i; !failed && (i = next++) < clusters;) {
      try {
        world.run(i);
      } catch (const EmulatorError& caught) {
        failed = true;
        std::lock_guard<std::mutex> lock(mutex);
        if (i < first_failed) {
          first_failed = i;
          error.emplace(caught);
        }
        break;
      }
    }
    std::lock_guard<std::mutex> lock(mutex);
    total.add(world.counters());
  };
  std::vector<std::thread> threads;
  for (std::uint32_t i = 1; i < std::min(wanted, clusters); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (error) throw *error;
  return total;
}

}  // namespace fastgemm::emulated

// The switches of the process, set first by the environment: verbose, strict.
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "fastgemm/gemm.hpp"

namespace fastgemm {
namespace {

using Switch = std::atomic<bool>;

bool on_in_environment(const char* variable) {
  const char* value = std::getenv(variable);
  return value && *value && std::strcmp(value, "0") != 0;
}

Switch& verbose_switch() {
  static Switch on{on_in_environment("FASTGEMM_VERBOSE")};
  return on;
}

Switch& strict_switch() {
  static Switch on{on_in_environment("FASTGEMM_STRICT")};
  return on;
}

}  // namespace

void set_verbose(bool on) { verbose_switch().store(on, std::memory_order_relaxed); }

bool verbose() { return verbose_switch().load(std::memory_order_relaxed); }

void set_strict(bool on) { strict_switch().store(on, std::memory_order_relaxed); }

bool strict() { return strict_switch().load(std::memory_order_relaxed); }

}  // namespace fastgemm

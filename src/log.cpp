// The log hook.
#include <cstdio>
#include <memory>
#include <mutex>

#include "log_internal.hpp"

namespace fastgemm {
namespace {

void write_to_stderr(LogLevel level, const std::string& message) {
  std::fprintf(stderr, "fastgemm%s: %s\n", level == LogLevel::warning ? " warning" : "",
               message.c_str());
}

std::mutex& hook_mutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

std::shared_ptr<const LogHook>& hook() {
  static auto& hook = *new std::shared_ptr<const LogHook>;
  return hook;
}

// A hook may take the GIL, so that it must never run under a lock.
void emit(LogLevel level, const std::string& message) {
  std::shared_ptr<const LogHook> current;
  {
    std::lock_guard<std::mutex> lock(hook_mutex());
    current = hook();
  }
  if (current)
    (*current)(level, message);
  else
    write_to_stderr(level, message);
}

}  // namespace

void set_log_hook(LogHook new_hook) {
  auto next = new_hook ? std::make_shared<const LogHook>(std::move(new_hook)) : nullptr;
  std::lock_guard<std::mutex> lock(hook_mutex());
  hook().swap(next);
}

void log_info(const std::string& message) {
  if (verbose()) emit(LogLevel::info, message);
}

void log_warning(const std::string& message) { emit(LogLevel::warning, message); }

}  // namespace fastgemm

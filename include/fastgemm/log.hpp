// Where messages go: one hook, set by the application (Python sets it to its logging module).
#pragma once

#include <functional>
#include <string>

#include "fastgemm/export.hpp"

namespace fastgemm {

enum class LogLevel { info, warning };
using LogHook = std::function<void(LogLevel, const std::string&)>;

// Replaces the hook; an empty one restores the default, which writes to stderr. Thread-safe.
FASTGEMM_API void set_log_hook(LogHook hook);

// Whether each compile, load and cache hit is reported (LogLevel::info). Off unless
// FASTGEMM_VERBOSE=1.
FASTGEMM_API void set_verbose(bool on);
FASTGEMM_API bool verbose();

}  // namespace fastgemm

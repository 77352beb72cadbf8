// From source to machine code: target, options, disk cache, NVRTC.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "device_headers.hpp"
#include "fastgemm/kernel.hpp"
#include "lru_cache.hpp"

namespace fastgemm {

// The compute capability to compile for, so that the code runs on `cc`: itself or, unless `exact`,
// the nearest older one of the same major. Throws CompileError naming cc, the NVRTC version and
// what it supports.
int pick_target(int cc, const std::vector<int>& supported, const std::string& nvrtc_version,
                bool exact = false);

// Compiles any source with an extern "C" kernel `name` for a compute capability, each once a
// process, through the disk cache. Throws CompileError.
std::shared_ptr<const CompiledKernel> compile_source(const std::string& name,
                                                     const std::string& source, int cc,
                                                     int dynamic_shared_bytes);

// All that the machine code depends on, and nothing else: no path, no time.
std::string cache_key(const std::string& source, const std::string& headers_hash,
                      const std::string& nvrtc_identity, const std::vector<std::string>& options,
                      const std::string& requested_target);

// Whether compile() would find the plan's machine code in memory or on disk.
bool is_compiled(const Plan& plan);

struct CompileCounts {
  std::int64_t compiles, disk_hits;
};
CompileCounts compile_counts();

void forget_compiled();  // drops the compiled kernels held in memory

}  // namespace fastgemm

// A compiled kernel: machine code for one target, and what the compiler made of it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fastgemm/export.hpp"
#include "fastgemm/plan.hpp"

namespace fastgemm {

struct CompiledKernel {
  std::string name;         // the entry's name: nothing to demangle, nothing to look up
  std::string source;       // what was generated: the constants, and the entry
  std::string target;       // "sm_90a"
  std::vector<char> cubin;  // machine code (ELF)
  int registers = 0;        // per thread
  int spill_bytes = 0;      // local memory per thread: 0 means that nothing was spilled
  int shared_bytes = 0;     // static + dynamic, per CTA
  double compile_ms = 0;    // 0 when it came from the disk cache
  bool from_disk = false;
  std::string nvrtc_version;  // "13.0"

  FASTGEMM_API std::string ptx()
      const;  // compiled anew to PTX, to be read; never given to the driver
};

// Compiles for the plan's target, or takes it from the disk cache. Needs NVRTC, no GPU and no
// driver. Throws CompileError.
FASTGEMM_API std::shared_ptr<const CompiledKernel> compile(const Plan& plan);

// The source that compile() would hand to NVRTC.
FASTGEMM_API std::string generate_source(const Plan& plan);

struct NvrtcInfo {
  std::string path, version;
  std::vector<int> archs;  // compute capabilities that it compiles for
};
FASTGEMM_API NvrtcInfo nvrtc_info();  // throws CompileError where there is none

// Folders to look for libnvrtc in before the system's own (Python passes those of the PyPI wheels).
FASTGEMM_API void add_nvrtc_folder(const std::string& folder);

}  // namespace fastgemm

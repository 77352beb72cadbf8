// What a cubin says of its kernel, read without driver or GPU.
#pragma once

#include <string_view>

namespace fastgemm {

struct CubinResources {
  int registers = 0;            // per thread
  int local_bytes = 0;          // stack frame per thread: spilled registers and local arrays
  int static_shared_bytes = 0;  // per CTA
};

// Throws CompileError when the cubin is damaged or has no kernel of that name.
CubinResources read_cubin(std::string_view cubin, std::string_view kernel);

}  // namespace fastgemm

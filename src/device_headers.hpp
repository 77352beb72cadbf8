// The device headers as NVRTC gets them: from memory, by the name in the #include.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace fastgemm {

// Written by embed_headers.cmake at build time.
struct EmbeddedHeader {
  const char* name;  // "fastgemm/device/gemm_kernel.cuh"
  const char* content;
};
extern const EmbeddedHeader embedded_headers[];
extern const std::size_t embedded_header_count;

struct HeaderSet {
  std::vector<std::string> names, contents;
  std::string hash;  // of all names and contents
};

HeaderSet make_header_set(std::vector<std::string> names, std::vector<std::string> contents);

// All fastgemm/device/**/*.cuh under `folder`. Throws CompileError when there are none.
HeaderSet read_header_folder(const std::string& folder);

// The embedded headers, or those of the folder that FASTGEMM_DEVICE_HEADERS names (for who edits
// kernels): read once.
const HeaderSet& device_headers();

}  // namespace fastgemm

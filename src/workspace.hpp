// Device memory for the length of one call.
#pragma once

#include <cstddef>

#include "driver.hpp"
#include "fastgemm/gemm.hpp"

namespace fastgemm {

// Allocated and freed in the order of a stream, from a pool of fastgemm's own: no other stream,
// thread or graph can have the same memory at the same time. In a stream that is being captured
// both become nodes of the graph.
class Workspace {
 public:
  Workspace(const DeviceContext& device, std::size_t bytes, Stream stream);
  ~Workspace();  // enqueues the release behind what has been enqueued by then
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  void* data() const { return reinterpret_cast<void*>(pointer_); }

 private:
  CUdeviceptr pointer_ = 0;
  Stream stream_;
};

}  // namespace fastgemm

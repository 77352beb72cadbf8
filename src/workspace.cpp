// Stream-ordered allocation from one pool a device.
#include "workspace.hpp"

#include <map>
#include <mutex>

#include "log_internal.hpp"

namespace fastgemm {
namespace {

CUmemoryPool pool_of(const DeviceContext& device) {
  static auto& mutex = *new std::mutex;
  static auto& pools = *new std::map<int, CUmemoryPool>;
  std::lock_guard<std::mutex> lock(mutex);
  CUmemoryPool& pool = pools[device.ordinal];
  if (pool) return pool;
  const RelaxedCapture relaxed;
  CUmemPoolProps properties{};
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device.ordinal;
  CUmemoryPool created = nullptr;
  check(driver().mem_pool_create(&created, &properties), "cuMemPoolCreate");
  // Keep what was freed: the default gives it back to the system at every synchronisation.
  std::uint64_t keep = ~std::uint64_t{0};
  check(driver().mem_pool_set_attribute(created, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
        "cuMemPoolSetAttribute");
  return pool = created;
}

}  // namespace

Workspace::Workspace(const DeviceContext& device, std::size_t bytes, Stream stream)
    : stream_(stream) {
  check(driver().mem_alloc_from_pool_async(&pointer_, bytes, pool_of(device), stream),
        "cuMemAllocFromPoolAsync",
        std::to_string(bytes) +
            " bytes of workspace; repack_a=False, repack_b=False and split_k=1 need none");
}

Workspace::~Workspace() {
  if (driver().mem_free_async(pointer_, stream_) != CUDA_SUCCESS)
    log_warning("a workspace could not be freed: the CUDA context is broken");
}

}  // namespace fastgemm

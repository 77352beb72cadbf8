// Host bodies of ptx/tma.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void prefetch_tensormap(const TensorMap& map) {
  const int origin[4] = {};
  emulated::machine().tma_prefetch(&map, origin);
}
FASTGEMM_DEVICE void tma_load_4d_multicast(u32 shared, const TensorMap& map, u32 barrier, int x,
                                           int y, int z, int w, u16 ctas) {
  emulated::machine().tma_load(shared, &map, barrier, {x, y, z, w}, ctas);
}
FASTGEMM_DEVICE void tma_load_4d(u32 shared, const TensorMap& map, u32 barrier, int x, int y, int z,
                                 int w) {
  emulated::machine().tma_load(shared, &map, barrier, {x, y, z, w}, 0);
}
FASTGEMM_DEVICE void tma_prefetch_4d(const TensorMap& map, int x, int y, int z, int w) {
  emulated::machine().tma_prefetch(&map, {x, y, z, w});
}
FASTGEMM_DEVICE void tma_store_4d(const TensorMap& map, u32 shared, int x, int y, int z, int w) {
  emulated::machine().tma_store(&map, shared, {x, y, z, w});
}
FASTGEMM_DEVICE void bulk_commit_group() { emulated::machine().bulk_commit_group(); }
template <int PENDING>
FASTGEMM_DEVICE void bulk_wait_group_read() {
  emulated::machine().bulk_wait_group_read(PENDING);
}
FASTGEMM_DEVICE void fence_proxy_async() { emulated::machine().fence_proxy_async(); }

}  // namespace fastgemm::ptx

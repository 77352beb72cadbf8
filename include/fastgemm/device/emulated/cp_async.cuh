// Host bodies of ptx/cp_async.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

template <int BYTES>
FASTGEMM_DEVICE void cp_async(u32 shared_address, const void* global, int valid_bytes) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
  emulated::machine().cp_async(shared_address, global, BYTES, valid_bytes);
}
template <int BYTES>
FASTGEMM_DEVICE void cp_async_below(u32 shared_address, const void* global, int index, int limit) {
  cp_async<BYTES>(shared_address, global, index < limit ? BYTES : 0);
}
FASTGEMM_DEVICE void cp_async_commit_group() { emulated::machine().cp_async_commit_group(); }
template <int PENDING>
FASTGEMM_DEVICE void cp_async_wait_group() {
  emulated::machine().cp_async_wait_group(PENDING);
}

}  // namespace fastgemm::ptx

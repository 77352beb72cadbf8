// What ptx/global.cuh does, on the CPU: for tests of the arithmetic around it.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

template <class T>
T ld_global_mergeable(const T* p) {
  return *p;
}

}  // namespace fastgemm::ptx

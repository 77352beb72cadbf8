// What ptx/global.cuh does, on the CPU: for tests of the arithmetic around it.
#pragma once

#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

template <class T>
T ld_global_mergeable(const T* p) {
  return *p;
}
template <class T>
void st_global(T* p, T value) {
  *p = value;
}
template <int WORDS>
void st_global_words(void* p, const u32* words) {
  for (int i = 0; i < WORDS; ++i) static_cast<u32*>(p)[i] = words[i];
}

}  // namespace fastgemm::ptx

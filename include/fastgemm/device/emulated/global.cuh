// Host bodies of ptx/global.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

template <class Bits>
FASTGEMM_DEVICE Bits ld_global(const Bits* p) {
  Bits value;
  emulated::machine().ld_global(p, &value, sizeof value);
  return value;
}
FASTGEMM_DEVICE void ld_global_once(u32* words, const void* p) {
  emulated::machine().ld_global(p, words, 16);
}
FASTGEMM_DEVICE void prefetch_l2(const void*) {}
template <class Bits>
FASTGEMM_DEVICE void st_global(Bits* p, Bits value) {
  emulated::machine().st_global(p, &value, sizeof value);
}
template <class T>
FASTGEMM_DEVICE T ld_global_mergeable(const T* p) {
  T value;
  emulated::machine().ld_global(p, &value, sizeof value);
  return value;
}
template <int WORDS>
FASTGEMM_DEVICE void ld_global_words(u32* words, const void* p) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4, "4, 8 or 16 bytes");
  emulated::machine().ld_global(p, words, 4 * WORDS);
}
template <int WORDS>
FASTGEMM_DEVICE void st_global_words(void* p, const u32* words) {
  static_assert(WORDS == 1 || WORDS == 2 || WORDS == 4, "4, 8 or 16 bytes");
  emulated::machine().st_global(p, words, 4 * WORDS);
}
FASTGEMM_DEVICE void st_global_pair_if(bool exists, void* p, u32 first, u32 second) {
  const u32 words[2] = {first, second};
  if (exists) emulated::machine().st_global(p, words, 8);
}

}  // namespace fastgemm::ptx

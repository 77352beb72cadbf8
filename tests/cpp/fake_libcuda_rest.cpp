// The entries that fake_libcuda.cpp has nothing to say about: they succeed.
#include "cuda_declarations.hpp"

#define FASTGEMM_SUCCEED(name, symbol, parameters) \
  extern "C" __attribute__((visibility("default"), weak)) int symbol() { return 0; }
FASTGEMM_DRIVER_ENTRIES(FASTGEMM_SUCCEED)

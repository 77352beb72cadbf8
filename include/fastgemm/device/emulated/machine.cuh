// The emulated machine as device code sees it: what the host bodies of ptx/ call. The library
// implements it in src/emulator/.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "fastgemm/device/emulated/prelude.cuh"

namespace fastgemm::emulated {

// Of this file: a kernel and a library that do not agree on it must not meet.
constexpr int INTERFACE_VERSION = 1;

enum class MmaKind { M16N8K16_F16, M16N8K16_BF16, M16N8K8_F16, M8N8K4_F16 };

// A wgmma.m64nNk16 with float32 accumulators: d[N / 16][8], and its operands' descriptors.
struct WgmmaOperation {
  int n;
  bool bf16, a_mn, b_mn, accumulate;
  u64 a, b;
  float* d;
};

// What a tensor map says, in the place of the driver's encoding. Index 0 is the contiguous one.
struct TensorBox {
  u64 magic;
  char* data;
  i64 extent[4];
  i64 stride_bytes[3];  // of indices 1 to 3
  int box[4];
  int swizzle_bytes;  // 128, 64, 32 or, with no swizzle, 16: the width of a row in shared memory
  int element_bytes;
};
constexpr u64 TENSOR_BOX_MAGIC = 0x786f625f6d656766;

// Every function stands for the instruction that its name says, executed by the running thread.
class Machine {
 public:
  virtual void bar_sync(int id, int threads) = 0;  // threads 0: all of the CTA
  virtual void bar_arrive(int id, int threads) = 0;
  virtual void bar_warp_sync() = 0;

  virtual void ld_shared(u32 address, void* to, int bytes) = 0;
  virtual void st_shared(u32 address, const void* from, int bytes) = 0;
  virtual void ldmatrix_x4(u32 address, u32* r, bool transposed) = 0;
  virtual void stmatrix_x4(u32 address, const u32* r, bool transposed) = 0;

  virtual void ld_global(const void* address, void* to, int bytes) = 0;
  virtual void st_global(void* address, const void* from, int bytes) = 0;
  virtual void raise_global(u32* address, u32 value) = 0;  // to the maximum, atomically

  virtual void cp_async(u32 shared, const void* global, int bytes, int valid_bytes) = 0;
  virtual void cp_async_commit_group() = 0;
  virtual void cp_async_wait_group(int pending) = 0;

  virtual u32 shuffle(u32 value, int source_lane) = 0;
  virtual void refuse_poison(float value) = 0;  // where a result could not carry it on
  virtual void mma(MmaKind kind, float* d, const u32* a, const u32* b) = 0;

  virtual void wgmma_fence() = 0;
  virtual void wgmma(const WgmmaOperation& operation) = 0;
  virtual void wgmma_commit_group() = 0;
  virtual void wgmma_wait_group(int pending) = 0;

  virtual void mbarrier_init(u32 barrier, u32 arrivals) = 0;
  virtual void fence_mbarrier_init() = 0;
  virtual void mbarrier_arrive(u32 barrier, u32 expected_bytes) = 0;  // of any CTA of the cluster
  virtual void mbarrier_wait(u32 barrier, u32 parity) = 0;

  virtual void tma_load(u32 shared, const void* map, u32 barrier, const int (&at)[4], u32 ctas) = 0;
  virtual void tma_prefetch(const void* map, const int (&at)[4]) = 0;
  virtual void tma_store(const void* map, u32 shared, const int (&at)[4]) = 0;
  virtual void bulk_commit_group() = 0;
  virtual void bulk_wait_group_read(int pending) = 0;
  virtual void fence_proxy_async() = 0;
  virtual void st_async(u32 shared, u32 barrier, const void* from, int bytes) = 0;

  virtual void cluster_arrive() = 0;
  virtual void cluster_wait() = 0;
  virtual void setmaxnreg(int registers, bool increase) = 0;
  virtual void griddepcontrol_wait() = 0;
  virtual void griddepcontrol_launch_dependents() = 0;

 protected:
  ~Machine() = default;
};

// The running thread: special registers, and the machine that runs it. CTAs of different clusters
// run in different threads of the operating system, each with its own.
struct Thread {
  Machine* machine;
  int thread_index;
  u32 block_index, grid_size, cluster_rank;
  u32 shared_window;  // where the CTA's shared memory begins
};
inline thread_local Thread* running = nullptr;

// Addresses of shared memory: the rank of the CTA in its cluster stands above the place in its
// window, as on the hardware.
constexpr int RANK_SHIFT = 24;
inline u32 in_cta(u32 address, u32 rank) {
  return (address & ((1u << RANK_SHIFT) - 1)) | rank << RANK_SHIFT;
}

inline Machine& machine() { return *running->machine; }

// What the library finds of a kernel: under its name with _entry behind it.
struct KernelEntry {
  int interface_version;
  const char* key;        // tells from what it was compiled
  void (*call)(void**);   // with the arguments behind an array of pointers, as launches have them
  Thread** (*running)();  // of the calling thread of the operating system
};

template <class... Parameters, std::size_t... I>
void call_kernel(void (*kernel)(Parameters...), void** arguments, std::index_sequence<I...>) {
  kernel(*static_cast<std::remove_const_t<Parameters>*>(arguments[I])...);
}
template <class... Parameters>
void call_kernel(void (*kernel)(Parameters...), void** arguments) {
  call_kernel(kernel, arguments, std::index_sequence_for<Parameters...>());
}
template <auto KERNEL>
constexpr KernelEntry kernel_entry(const char* key) {
  return {INTERFACE_VERSION, key, [](void** arguments) { call_kernel(KERNEL, arguments); },
          [] { return &running; }};
}

}  // namespace fastgemm::emulated

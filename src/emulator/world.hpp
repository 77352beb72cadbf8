// The machine that runs one cluster of CTAs: its threads as fibers, their order, their memory.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "emulator/clocks.hpp"
#include "emulator/counters.hpp"
#include "emulator/fiber.hpp"
#include "emulator/global_memory.hpp"
#include "emulator/shared_memory.hpp"
#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/emulated/prelude.cuh"
#include "fastgemm/error.hpp"

namespace fastgemm::emulated {

// One launch of a kernel, in what all its clusters have in common.
struct Launch {
  std::string kernel;
  const KernelEntry* entry = nullptr;
  std::uint32_t ctas = 0;
  int threads = 0, shared_bytes = 0, cluster = 1;
  bool early_start = false;  // before the kernel ahead has ended
  void** arguments = nullptr;
  GlobalMemory memory;
  std::uint64_t seed = 0;
};

struct Warp;
struct Cta;

struct Fiber : Thread {
  Context context;
  int number = 0;  // in the cluster
  int lane = 0;
  Warp* warp = nullptr;
  Cta* cta = nullptr;
  bool done = false;
  const char* waits_at = nullptr;  // the instruction, while it waits
  std::uint32_t waits_on = 0;      // and its barrier
  std::uint32_t stage = 0;         // which it stores to: origin_of() where it waited last

  // What this thread knows: `base`, and what it has learnt by itself since.
  ClockRef base;
  std::uint32_t clock = 1;                          // of its own accesses
  std::uint32_t own_fence = 0, own_copy_fence = 0;  // up to where its writes were fenced
  std::uint32_t copy_group = 1, copies_done = 0;  // cp.async: the open group, the groups waited for
  std::uint32_t wgmma_done = 0;                   // groups of its warpgroup
  std::uint32_t bulk_group = 1, bulk_done = 0;
  bool bulk_open = false;  // copies in the open group
  bool wgmma_fenced = false;
  bool dependent_wait_done = false;
  std::uint32_t cluster_arrivals = 0, cluster_waits = 0;  // at the barrier of the cluster
};

// Where threads meet to execute one instruction together. Operands lie on their stacks.
struct Meeting {
  const char* instruction = nullptr;
  int arrived = 0;
  std::array<const void*, 128> in;
  std::array<void*, 128> out;
  std::array<std::uint32_t, 128> value;
};

// What all that arrived at a barrier know together.
struct Gathering {
  ClockRef merged, last;
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  Gathering knowledge;
  std::vector<Fiber*> waiting;
};

// Of a warpgroup, one wgmma that has been started: executed when its group is waited for.
struct PendingWgmma {
  std::uint32_t group;
  WgmmaOperation operation;
  std::array<float*, 128> d;
  std::vector<float> a, b;               // [64][16], [16][n]
  std::vector<char> poison_a, poison_b;  // rows of A, columns of B that must not be used
};

struct Warpgroup {
  Meeting meeting;
  std::uint32_t group = 1;  // the open one
  bool open = false;        // operations in it
  std::vector<PendingWgmma> pending;
};

struct Warp {
  int number = 0;  // in the cluster
  Cta* cta = nullptr;
  Warpgroup* warpgroup = nullptr;
  Fiber* lanes = nullptr;  // 32
  std::uint32_t ready = 0;
  Meeting meeting;
  NamedBarrier sync;
  WarpAccesses accesses;
  int registers = 0;
  bool bulk_owner_known = false;
  int bulk_owner = 0;
};

struct Mbarrier {
  std::uint32_t expected = 0, pending = 0;  // arrivals of a phase, and those still missing
  std::int64_t bytes = 0;                   // announced and not yet in
  std::uint32_t phase = 0;                  // that is under way
  Epoch made;
  bool fenced = false;              // fence.mbarrier_init
  std::uint32_t fenced_before = 0;  // which arrival at the barrier of the cluster
  Gathering arriving;
  ClockRef completed;  // what the phase before brought
  std::vector<Fiber*> waiting;
};

struct Cta {
  std::uint32_t block = 0, rank = 0;
  SharedMemory shared;
  std::array<NamedBarrier, 16> barriers;
  std::map<std::uint32_t, Mbarrier> mbarriers;  // by offset
  std::vector<std::uint32_t> unfenced_barriers;
  std::uint32_t engine_clock = 0;
  int threads_left = 0;
  int free_registers = 0;
  std::vector<Fiber*> waiting_for_registers;
  std::string first_poison;  // why a result became poison, in words
};

class World final : public Machine {
 public:
  World(const Launch& launch, Stacks& stacks);

  // Runs the cluster; an error that it met is thrown as EmulatorError.
  void run(std::uint32_t cluster);
  const Counters& counters() const { return counters_; }

  static constexpr std::uint32_t WINDOW = 1024;  // where a CTA's shared memory begins

  void bar_sync(int id, int threads) override;
  void bar_arrive(int id, int threads) override;
  void bar_warp_sync() override;
  void ld_shared(u32 address, void* to, int bytes) override;
  void st_shared(u32 address, const void* from, int bytes) override;
  void ldmatrix_x4(u32 address, u32* r, bool transposed) override;
  void stmatrix_x4(u32 address, const u32* r, bool transposed) override;
  void ld_global(const void* address, void* to, int bytes) override;
  void st_global(void* address, const void* from, int bytes) override;
  void raise_global(u32* address, u32 value) override;
  void refuse_poison(float value) override;
  void cp_async(u32 shared, const void* global, int bytes, int valid_bytes) override;
  void cp_async_commit_group() override;
  void cp_async_wait_group(int pending) override;
  u32 shuffle(u32 value, int source_lane) override;
  void mma(MmaKind kind, float* d, const u32* a, const u32* b) override;
  void wgmma_fence() override;
  void wgmma(const WgmmaOperation& operation) override;
  void wgmma_commit_group() override;
  void wgmma_wait_group(int pending) override;
  void mbarrier_init(u32 barrier, u32 arrivals) override;
  void fence_mbarrier_init() override;
  void mbarrier_arrive(u32 barrier, u32 expected_bytes) override;
  void mbarrier_wait(u32 barrier, u32 parity) override;
  void tma_load(u32 shared, const void* map, u32 barrier, const int (&at)[4], u32 ctas) override;
  void tma_prefetch(const void* map, const int (&at)[4]) override;
  void tma_store(const void* map, u32 shared, const int (&at)[4]) override;
  void bulk_commit_group() override;
  void bulk_wait_group_read(int pending) override;
  void fence_proxy_async() override;
  void st_async(u32 shared, u32 barrier, const void* from, int bytes) override;
  void cluster_arrive() override;
  void cluster_wait() override;
  void setmaxnreg(int registers, bool increase) override;
  void griddepcontrol_wait() override;
  void griddepcontrol_launch_dependents() override;

 private:
  // scheduler.cpp
  void reset(std::uint32_t cluster);
  static void begin(void* fiber);
  void finish_thread();
  void wait_at(const char* instruction, std::uint32_t on = 0);
  void wake(Fiber& fiber);
  Fiber* next_ready();
  void switch_away();
  [[noreturn]] void fail_deadlock();
  std::string missing_at(const Fiber& fiber) const;
  [[noreturn]] void fail(const char* kind, const std::string& instruction,
                         const std::string& address, const std::string& message);
  std::uint64_t random();
  template <class Execute>
  void meet(Meeting& meeting, Fiber* members, int count, const char* instruction, const void* in,
            void* out, std::uint32_t value, Execute execute);

  // barriers.cpp
  void gather(Gathering& gathering);
  void learn(Fiber& fiber, const ClockRef& knowledge);
  void arrive(NamedBarrier& barrier, int expected, const std::string& name);
  void complete(NamedBarrier& barrier);

  // shared_access.cpp
  bool ordered(const Fiber& fiber, Epoch epoch) const;
  bool visible_to_async(const Fiber& fiber, Epoch epoch) const;
  std::string describe(Epoch epoch) const;
  struct Spot {
    Cta* cta;
    std::uint32_t offset;
  };
  Spot locate(const char* instruction, u32 address, int bytes, int alignment, bool remote = false);
  void check_read(const char* instruction, u32 address, const Spot& spot, int bytes, Epoch reader,
                  bool async);
  void check_write(const char* instruction, u32 address, const Spot& spot, int bytes, Epoch writer,
                   std::uint32_t origin);

  // global_access.cpp
  Array& find_array(const char* instruction, const void* address, int bytes,
                    GlobalMemory::Need need);
  void store_elements(const char* instruction, void* address, const void* from, int bytes);

  // mbarrier.cpp
  Mbarrier& find_mbarrier(const char* instruction, u32 address, Spot& spot, bool by_engine);
  void complete_phase_if_due(Mbarrier& barrier);
  void complete_bytes(Mbarrier& barrier, Epoch writer, int bytes);

  // tma.cpp
  const TensorBox& find_box(const char* instruction, const void* map, const int (&at)[4]);
  void load_box(const TensorBox& box, u32 shared, u32 barrier, const int (&at)[4], Epoch engine);

  // wgmma.cpp
  std::string refuse_operand(const Granule& g, u32 home, bool is_b, int row) const;
  void read_operand(PendingWgmma& to, bool is_b);
  void execute(PendingWgmma& pending);

  Epoch own(const Fiber& fiber) const {
    return {fiber.clock, static_cast<std::uint16_t>(fiber.number)};
  }

  const Launch& launch_;
  Stacks& stacks_;
  Agents agents_;
  ClockPool clocks_;  // outlives all that refers to it
  std::vector<Fiber> fibers_;
  std::vector<Warp> warps_;
  std::vector<Warpgroup> warpgroups_;
  std::vector<Cta> ctas_;
  std::uint32_t cluster_phase_ = 0;  // of the cluster's barrier
  int cluster_arrived_ = 0;
  std::vector<Fiber*> waiting_for_cluster_;

  Context outside_;
  Fiber* current_ = nullptr;
  Thread** running_ = nullptr;  // the kernel's own pointer to the running thread
  std::uint64_t ready_warps_ = 0;
  int fibers_left_ = 0;
  int rotation_ = 0;
  std::uint64_t random_state_ = 0;
  std::optional<EmulatorError> error_;
  Counters counters_;
};

// All `count` members call it with the same instruction; the last executes it for all.
template <class Execute>
void World::meet(Meeting& meeting, Fiber* members, int count, const char* instruction,
                 const void* in, void* out, std::uint32_t value, Execute execute) {
  Fiber& self = *current_;
  const auto place = static_cast<std::size_t>(&self - members);
  if (meeting.arrived == 0) meeting.instruction = instruction;
  if (meeting.instruction != instruction)
    fail("divergence", instruction, "",
         "the other threads of its group wait at " + std::string(meeting.instruction) +
             ": all have to execute the same instruction together");
  meeting.in[place] = in;
  meeting.out[place] = out;
  meeting.value[place] = value;
  if (++meeting.arrived < count) return wait_at(instruction);
  meeting.arrived = 0;
  execute();
  for (int i = 0; i < count; ++i)
    if (&members[i] != &self) wake(members[i]);
}

std::string hex(std::uint64_t value);

}  // namespace fastgemm::emulated

// Loads and stores of global memory: only elements of the launch's arrays exist.
#include <cstring>

#include "emulator/world.hpp"
#include "fastgemm/device/emulated/numbers.cuh"

namespace fastgemm::emulated {
namespace {

bool holds_poison(DType dtype, const char* element) {
  if (dtype == DType::f32) {
    u32 bits;
    std::memcpy(&bits, element, sizeof bits);
    return is_poison(bits);
  }
  if (dtype != DType::f16 && dtype != DType::bf16) return false;
  u16 bits;
  std::memcpy(&bits, element, sizeof bits);
  return bits == (dtype == DType::f16 ? POISON_F16 : POISON_BF16);
}

}  // namespace

Array& World::find_array(const char* instruction, const void* address, int bytes,
                         GlobalMemory::Need need) {
  const Fiber& self = *current_;
  if (!self.dependent_wait_done && !self.base->dependent_wait_done)
    fail("race", instruction, hex(reinterpret_cast<std::uintptr_t>(address)),
         "before griddepcontrol.wait: the kernel ahead may still write there or read from there");
  Array* array = launch_.memory.find(address, bytes, need);
  if (!array)
    fail("out of bounds", instruction, hex(reinterpret_cast<std::uintptr_t>(address)),
         launch_.memory.explain(address, bytes, need));
  return *array;
}

void World::check_aligned(const char* instruction, std::uintptr_t address, int bytes) {
  if (address % static_cast<std::uintptr_t>(bytes))
    fail("misaligned", instruction, hex(address),
         "the address has to be a multiple of " + std::to_string(bytes));
}

void World::check_poison(const char* instruction, const Array& array, const void* address,
                         const void* from, int bytes) {
  const int size = static_cast<int>(size_of(array.dtype()));
  for (int at = 0; at + size <= bytes; at += size)
    if (holds_poison(array.dtype(), static_cast<const char*>(from) + at))
      fail(
          "uninitialized", instruction, hex(reinterpret_cast<std::uintptr_t>(address)),
          array.place(static_cast<const char*>(address) + at) +
              " depends on shared memory that wgmma must not read: " + current_->cta->first_poison);
}

void World::store_elements(const char* instruction, void* address, const void* from, int bytes) {
  Array& array = find_array(instruction, address, bytes, GlobalMemory::Need::all_to_write);
  check_poison(instruction, array, address, from, bytes);
  if (!array.mark_written(address, bytes))
    fail("race", instruction, hex(reinterpret_cast<std::uintptr_t>(address)),
         array.place(address) + " and what follows is written twice");
  std::memcpy(address, from, static_cast<std::size_t>(bytes));
}

void World::ld_global(const void* address, void* to, int bytes) {
  Fiber& self = *current_;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  check_aligned("ld.global", at, bytes);
  find_array("ld.global", address, bytes, GlobalMemory::Need::some_to_read);
  std::memcpy(to, address, static_cast<std::size_t>(bytes));
  self.warp->accesses.add(counters_, Op::ld_global, self.lane, 0, at, bytes, bytes);
}

void World::st_global(void* address, const void* from, int bytes) {
  Fiber& self = *current_;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  check_aligned("st.global", at, bytes);
  store_elements("st.global", address, from, bytes);
  self.warp->accesses.add(counters_, Op::st_global, self.lane, 0, at, bytes, bytes);
}

// CTAs run in threads of the operating system, so that it is an atomic here too.
void World::red_max(u32* address, u32 value) {
  Fiber& self = *current_;
  constexpr int bytes = sizeof value;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  check_aligned("red.global", at, bytes);
  const Array& array = find_array("red.global", address, bytes, GlobalMemory::Need::all_to_write);
  check_poison("red.global", array, address, &value, bytes);
  u32 seen = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(address, &seen, value, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  self.warp->accesses.add(counters_, Op::red, self.lane, 0, at, bytes, bytes);
}

void World::griddepcontrol_wait() { current_->dependent_wait_done = true; }

void World::griddepcontrol_launch_dependents() {}

}  // namespace fastgemm::emulated

// Loads and stores of global memory: only elements of the launch's arrays exist.
#include <cstring>

#include "emulator/world.hpp"
#include "fastgemm/device/emulated/numbers.cuh"

namespace fastgemm::emulated {
namespace {

// Of a type that can: what becomes one of 8 bits was looked at before (emulated/convert8.cuh).
bool holds_poison(DType dtype, const char* element) {
  if (size_of(dtype) == 1) return false;
  if (dtype == DType::f32) {
    u32 bits;
    std::memcpy(&bits, element, sizeof bits);
    return is_poison(bits);
  }
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

void World::store_elements(const char* instruction, void* address, const void* from, int bytes) {
  Array& array = find_array(instruction, address, bytes, GlobalMemory::Need::all_to_write);
  const int size = static_cast<int>(size_of(array.dtype()));
  const char* data = static_cast<const char*>(from);
  for (int at = 0; at + size <= bytes; at += size)
    if (holds_poison(array.dtype(), data + at))
      fail(
          "uninitialized", instruction, hex(reinterpret_cast<std::uintptr_t>(address)),
          array.place(static_cast<char*>(address) + at) +
              " depends on shared memory that wgmma must not read: " + current_->cta->first_poison);
  if (!array.mark_written(address, bytes))
    fail("race", instruction, hex(reinterpret_cast<std::uintptr_t>(address)),
         array.place(address) + " and what follows is written twice");
  std::memcpy(address, from, static_cast<std::size_t>(bytes));
}

void World::ld_global(const void* address, void* to, int bytes) {
  Fiber& self = *current_;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % static_cast<std::uintptr_t>(bytes))
    fail("misaligned", "ld.global", hex(at),
         "the address has to be a multiple of " + std::to_string(bytes));
  find_array("ld.global", address, bytes, GlobalMemory::Need::some_to_read);
  std::memcpy(to, address, static_cast<std::size_t>(bytes));
  self.warp->accesses.add(counters_, Op::ld_global, self.lane, 0, at, bytes, bytes);
}

void World::st_global(void* address, const void* from, int bytes) {
  Fiber& self = *current_;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at % static_cast<std::uintptr_t>(bytes))
    fail("misaligned", "st.global", hex(at),
         "the address has to be a multiple of " + std::to_string(bytes));
  store_elements("st.global", address, from, bytes);
  self.warp->accesses.add(counters_, Op::st_global, self.lane, 0, at, bytes, bytes);
}

void World::raise_global(u32* address, u32 value) {
  find_array("red.max", address, sizeof value, GlobalMemory::Need::all_to_write);
  u32 seen = __atomic_load_n(address, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(address, &seen, value, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

void World::refuse_poison(float value) {
  if (is_poison(__float_as_uint(value)))
    fail("uninitialized", "cvt", "",
         "a result depends on shared memory that wgmma must not read: " +
             current_->cta->first_poison);
}

void World::griddepcontrol_wait() { current_->dependent_wait_done = true; }

void World::griddepcontrol_launch_dependents() {}

}  // namespace fastgemm::emulated

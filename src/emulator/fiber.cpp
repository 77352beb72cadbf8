// Fibers: the switch for x86-64 and AArch64 (what the calling convention wants kept goes to the
// stack).
#include "emulator/fiber.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <cstring>
#include <new>

// void fastgemm_switch(void** from, void* to): a few nanoseconds, where swapcontext makes a system
// call.
extern "C" void fastgemm_switch(void** from, void* to);

// A new context begins here: entry and argument lie in the registers that the switch restores.
extern "C" void fastgemm_begin();

#if defined(__x86_64__)
asm(R"(
.pushsection .text
.hidden fastgemm_switch
.globl fastgemm_switch
.type fastgemm_switch,@function
fastgemm_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.hidden fastgemm_begin
.globl fastgemm_begin
.type fastgemm_begin,@function
fastgemm_begin:
  movq %r12, %rdi
  callq *%r13
  ud2
.popsection
)");
namespace {
enum Slot { R15, R14, R13, R12, RBX, RBP, RETURN_ADDRESS, SLOTS };
constexpr int ARGUMENT = R12, ENTRY = R13;
}  // namespace
#elif defined(__aarch64__)
asm(R"(
.pushsection .text
.hidden fastgemm_switch
.globl fastgemm_switch
.type fastgemm_switch,%function
fastgemm_switch:
  sub sp, sp, #160
  stp x19, x20, [sp, #0]
  stp x21, x22, [sp, #16]
  stp x23, x24, [sp, #32]
  stp x25, x26, [sp, #48]
  stp x27, x28, [sp, #64]
  stp x29, x30, [sp, #80]
  stp d8, d9, [sp, #96]
  stp d10, d11, [sp, #112]
  stp d12, d13, [sp, #128]
  stp d14, d15, [sp, #144]
  mov x9, sp
  str x9, [x0]
  mov sp, x1
  ldp x19, x20, [sp, #0]
  ldp x21, x22, [sp, #16]
  ldp x23, x24, [sp, #32]
  ldp x25, x26, [sp, #48]
  ldp x27, x28, [sp, #64]
  ldp x29, x30, [sp, #80]
  ldp d8, d9, [sp, #96]
  ldp d10, d11, [sp, #112]
  ldp d12, d13, [sp, #128]
  ldp d14, d15, [sp, #144]
  add sp, sp, #160
  ret
.hidden fastgemm_begin
.globl fastgemm_begin
.type fastgemm_begin,%function
fastgemm_begin:
  mov x0, x19
  blr x20
  brk #1
.popsection
)");
namespace {
enum Slot { X19, X20, RETURN_ADDRESS = 11, SLOTS = 20 };
constexpr int ARGUMENT = X19, ENTRY = X20;
}  // namespace
#else
#error "the emulator's fibers are written for x86-64 and AArch64"
#endif

namespace fastgemm::emulated {

void Context::start(char* stack, std::size_t bytes, void (*entry)(void*), void* argument) {
  auto top = reinterpret_cast<std::uintptr_t>(stack + bytes) & ~std::uintptr_t{15};
  void** slots = reinterpret_cast<void**>(top) - SLOTS;
  std::memset(slots, 0, SLOTS * sizeof(void*));
  slots[ARGUMENT] = argument;
  slots[ENTRY] = reinterpret_cast<void*>(entry);
  slots[RETURN_ADDRESS] = reinterpret_cast<void*>(&fastgemm_begin);
  stack_pointer_ = slots;
}

void Context::go(Context& from, Context& to) {
  fastgemm_switch(&from.stack_pointer_, to.stack_pointer_);
}

Stacks::Stacks(int count) : count_(count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * BYTES;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  memory_ = static_cast<char*>(memory);
  for (int i = 0; i < count; ++i) ::mprotect(at(i) - PAGE, PAGE, PROT_NONE);
}

Stacks::~Stacks() { ::munmap(memory_, static_cast<std::size_t>(count_) * BYTES); }

}  // namespace fastgemm::emulated

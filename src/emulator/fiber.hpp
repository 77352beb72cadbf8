// Fibers: many stacks in one thread of the operating system, switched by hand.
#pragma once

#include <cstddef>
#include <memory>

namespace fastgemm::emulated {

// A place where execution stands: a stack, and what the platform keeps besides.
class Context {
 public:
  // Makes the context begin in entry(argument) on `stack`; entry must not return.
  void start(char* stack, std::size_t bytes, void (*entry)(void*), void* argument);

  // Stops here, in `from`, and goes on where `to` stands.
  static void go(Context& from, Context& to);

 private:
  void* stack_pointer_ = nullptr;
};

// Equal stacks side by side; memory is taken when it is touched. Beneath each lies a page that
// faults.
class Stacks {
 public:
  static constexpr std::size_t BYTES = 256 * 1024;

  explicit Stacks(int count);
  ~Stacks();
  Stacks(const Stacks&) = delete;
  Stacks& operator=(const Stacks&) = delete;

  int count() const { return count_; }
  char* at(int i) const { return memory_ + static_cast<std::size_t>(i) * BYTES + PAGE; }
  // They begin at different places of the cache.
  static std::size_t bytes(int i) {
    return BYTES - PAGE - static_cast<std::size_t>(i % 64) * 17 * 64;
  }

 private:
  static constexpr std::size_t PAGE = 4096;
  int count_;
  char* memory_;
};

}  // namespace fastgemm::emulated

// What the tests of plans share: GPUs to plan for, products to plan, and configs with every field
// fixed.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "fastgemm/plan.hpp"
#include "planner.hpp"
#include "problems.hpp"

namespace fastgemm {

// A row of the parameter table each, and cards that differ from their row.
inline std::vector<HardwareSpec> targets() {
  std::vector<HardwareSpec> all;
  for (const ArchSpec& arch : arch_table()) all.push_back(hardware(arch_name(arch.cc)));
  for (const char* card : {"H200", "H20", "RTX 4090", "AGX Thor"}) all.push_back(hardware(card));
  return all;
}

inline std::vector<DType> dtypes_of(const HardwareSpec& hw) {
  return hw.arch.bf16 ? std::vector<DType>{DType::f16, DType::bf16}
                      : std::vector<DType>{DType::f16};
}

class Dice {
 public:
  explicit Dice(unsigned seed) : rng_(seed) {}
  bool one_in(int n) { return below(n) == 0; }
  // Of 1 .. most; round ones are frequent, since the TMA wants them.
  int extent(int most) {
    const int any = 1 + below(most);
    return one_in(3) || any < 8 ? any : any / 8 * 8;
  }
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(rng_); }
  template <class T>
  T pick(const std::vector<T>& from) {
    return from[static_cast<std::size_t>(below(static_cast<int>(from.size())))];
  }

 private:
  std::mt19937 rng_;
};

// A product of these extents in a layout, batch, dtype of D, order of D, alignment and pitch that
// the dice decide.
inline GemmProblem any_problem(Dice& dice, DType dtype, std::int64_t m, std::int64_t n,
                               std::int64_t k) {
  const auto layout = dice.pick<const char*>({"nn", "nt", "tn", "tt"});
  const std::int64_t batch = dice.one_in(4) ? dice.pick<int>({2, 3, 17}) : 1;
  const DType out = dice.one_in(3) ? DType::f32 : dtype;
  GemmProblem p = packed_problem(m, n, k, dtype, layout, batch, out, dice.one_in(4));
  if (dice.one_in(8)) std::swap(p.d.row_stride = m, p.d.col_stride);
  if (dice.one_in(8)) p.b.batch_stride = 0;
  std::int64_t at = kBase;
  for (MatrixView* view : {&p.a, &p.b, &p.c, &p.d}) {
    const std::int64_t element = static_cast<std::int64_t>(size_of(view->dtype));
    at += std::int64_t{1} << 45;
    view->data = address(at + (dice.one_in(6) ? element * dice.pick<int>({1, 2, 4}) : 0));
    std::int64_t& pitch = view->row_stride == 1 ? view->col_stride : view->row_stride;
    if (dice.one_in(6)) {
      const std::int64_t wider = dice.pick<int>({1, 2, 4, 8});
      pitch += wider;
      view->batch_stride += view->batch_stride == 0 ? 0 : wider * (m + n + k);
    }
  }
  return p;
}

// Every field as the kernel has it.
inline GemmConfig resolved(const KernelConfig& k) {
  GemmConfig c;
  c.family = k.family;
  c.block_m = k.block_m, c.block_n = k.block_n, c.block_k = k.block_k;
  c.warp_m = k.warp_m, c.warp_n = k.warp_n;
  c.split_k = k.split_k;
  c.num_stages = k.num_stages;
  c.swizzle = k.swizzle;
  c.swizzle_bytes = k.swizzle_bytes;
  c.raster_group = k.raster_group;
  c.staged_stores = k.staged_stores;
  c.swap_ab = k.swap_ab;
  c.cluster_m = k.cluster_m, c.cluster_n = k.cluster_n, c.cluster_k = k.cluster_k;
  c.multicast = k.multicast;
  c.tma_stores = k.tma_stores;
  c.dependent_launch = k.dependent_launch;
  c.prefetch = k.prefetch;
  c.ping_pong = k.ping_pong;
  c.persistent = k.persistent;
  c.repack_a = k.repack_a, c.repack_b = k.repack_b;
  c.shift_a = k.shift_a, c.shift_b = k.shift_b;
  return c;
}

// One wish: how to make it, and whether a kernel heeds it.
struct Wish {
  const char* field;
  std::function<void(GemmConfig&)> make;
  std::function<bool(const KernelConfig&)> heeded;
};

template <class T>
Wish wish(const char* field, std::optional<T> GemmConfig::* wanted, T KernelConfig::* got,
          T value) {
  return {field, [=](GemmConfig& c) { c.*wanted = value; },
          [=](const KernelConfig& k) { return k.*got == value; }};
}

#define WISH(field, value) wish(#field, &GemmConfig::field, &KernelConfig::field, value)

inline GemmConfig only(const Wish& w) {
  GemmConfig config;
  w.make(config);
  return config;
}

template <class E = InvalidValue>
std::string plan_refusal(const GemmProblem& p, const HardwareSpec& hw,
                         const GemmConfig& config = {}) {
  try {
    return "planned: " + plan(p, hw, config).str();
  } catch (const E& e) {
    return e.what();
  }
}

}  // namespace fastgemm

// GemmConfig and KernelConfig as values: names, text, equality, hash, and what a kernel needs of an
// SM.
#include <algorithm>
#include <tuple>

#include "fastgemm/error.hpp"
#include "planner.hpp"

namespace fastgemm {

namespace {

constexpr Family FAMILIES[] = {Family::sm70, Family::sm75, Family::sm80};

// Every field, in one place for ==, hash and text. Visits (name, value).
template <class Config, class Visit>
void for_each_field(Config& c, Visit visit) {
  visit("family", c.family);
  visit("block_m", c.block_m);
  visit("block_n", c.block_n);
  visit("block_k", c.block_k);
  visit("warp_m", c.warp_m);
  visit("warp_n", c.warp_n);
  visit("num_stages", c.num_stages);
  visit("swizzle", c.swizzle);
  visit("raster_group", c.raster_group);
  visit("staged_stores", c.staged_stores);
}

std::string text(Family f) { return name(f); }
std::string text(const std::string& s) { return s; }
std::string text(bool b) { return b ? "true" : "false"; }
std::string text(int i) { return std::to_string(i); }

auto fields(const KernelConfig& c) {
  return std::make_tuple(c.family, c.in, c.out, c.a_major, c.b_major, c.block_m, c.block_n,
                         c.block_k, c.warp_m, c.warp_n, c.num_stages, c.swizzle, c.raster_group,
                         c.staged_stores, c.a_copy_bytes, c.b_copy_bytes, c.d_vector, c.has_c);
}

}  // namespace

const char* name(Family family) {
  switch (family) {
    case Family::sm70:
      return "sm70";
    case Family::sm75:
      return "sm75";
    case Family::sm80:
      return "sm80";
  }
  return "?";
}

Family family_from_name(std::string_view wanted) {
  std::string known;
  for (Family f : FAMILIES) {
    if (wanted == name(f)) return f;
    known += std::string(known.empty() ? "" : ", ") + name(f);
  }
  throw InvalidValue("unknown kernel family '" + std::string(wanted) + "'; there are " + known);
}

bool GemmConfig::operator==(const GemmConfig& o) const {
  return family == o.family && strategy == o.strategy && block_m == o.block_m &&
         block_n == o.block_n && block_k == o.block_k && warp_m == o.warp_m && warp_n == o.warp_n &&
         num_stages == o.num_stages && swizzle == o.swizzle && raster_group == o.raster_group &&
         staged_stores == o.staged_stores;
}

std::string GemmConfig::str() const {
  std::string s;
  const auto add = [&](const char* field, const auto& value) {
    if (value) s += (s.empty() ? "" : ", ") + std::string(field) + "=" + text(*value);
  };
  for_each_field(*this, add);
  add("strategy", strategy);
  return s;
}

bool KernelConfig::operator==(const KernelConfig& o) const { return fields(*this) == fields(o); }

std::size_t KernelConfigHash::operator()(const KernelConfig& c) const {
  std::uint64_t hash = 0xcbf29ce484222325u;
  std::apply(
      [&](auto... field) {
        ((hash = (hash ^ static_cast<std::uint64_t>(field)) * 0x9e3779b97f4a7c15u,
          hash ^= hash >> 29),
         ...);
      },
      fields(c));
  return hash;
}

std::string KernelConfig::str() const {
  std::string s = std::string(name(family)) + " " + std::to_string(block_m) + "x" +
                  std::to_string(block_n) + "x" + std::to_string(block_k) + ", warp " +
                  std::to_string(warp_m) + "x" + std::to_string(warp_n) + ", " +
                  std::to_string(num_stages) + (num_stages == 1 ? " stage" : " stages") +
                  ", raster " + std::to_string(raster_group);
  if (!swizzle) s += ", no swizzle";
  if (!staged_stores) s += ", direct stores";
  return s;
}

int shared_bytes(const KernelConfig& c) {
  const int ring = (c.block_m + c.block_n) * c.block_k * 2 * c.num_stages;
  if (!c.staged_stores) return ring;
  // The epilogue's staging buffers (device/epilogue.cuh, StagingBuffer): as many rows as fit into
  // the ring.
  const auto staging = [&](int rows) { return c.threads() / 32 * rows * (c.warp_n + 8) * 4; };
  int rows = c.warp_m;
  while (rows > 16 && (staging(rows) > ring || c.warp_m % rows != 0)) rows -= 16;
  return std::max(ring, staging(rows));
}

int estimated_registers(const KernelConfig& c) {
  const int accumulators = c.warp_m * c.warp_n / 32;
  const int per_fragment = c.family == Family::sm70 ? 8 : 4;
  const int fragments = 2 * per_fragment * (c.warp_m + c.warp_n) / 16;
  const int staged_tile =
      c.family == Family::sm80 ? 0 : (c.block_m + c.block_n) * c.block_k / 2 / c.threads();
  return std::min(accumulators + fragments + staged_tile + 44, 1024);
}

int ctas_per_sm(const KernelConfig& c, const HardwareSpec& hw) {
  const int by_shared = hw.arch.shared_per_sm / (shared_bytes(c) + hw.arch.shared_reserved);
  const int by_warps = hw.arch.warps_per_sm / (c.threads() / 32);
  const int registers =
      (std::min(estimated_registers(c), hw.arch.registers_per_thread) + 7) / 8 * 8;
  const int by_registers = hw.arch.registers_per_sm / (registers * c.threads());
  return std::min({by_shared, by_warps, by_registers, hw.arch.ctas_per_sm});
}

}  // namespace fastgemm

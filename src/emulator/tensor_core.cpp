// What a warp does together in registers: mma.sync and shuffles. The fragments are those of the PTX
// ISA, "Matrix Fragments for mma".
#include <cstring>

#include "emulator/products.hpp"
#include "emulator/world.hpp"

namespace fastgemm::emulated {
namespace {

const char* name_of(MmaKind kind) {
  switch (kind) {
    case MmaKind::M16N8K16_F16:
      return "mma.m16n8k16.f16";
    case MmaKind::M16N8K16_BF16:
      return "mma.m16n8k16.bf16";
    case MmaKind::M16N8K8_F16:
      return "mma.m16n8k8";
    case MmaKind::M8N8K4_F16:
      break;
  }
  return "mma.m8n8k4";
}

struct Lanes {
  const Meeting& meeting;
  u16 a(int lane, int i) const { return half(meeting.in[static_cast<std::size_t>(lane)], i); }
  u16 b(int lane, int i) const { return half(meeting.out[static_cast<std::size_t>(lane + 32)], i); }
  float* d(int lane) const {
    return static_cast<float*>(meeting.out[static_cast<std::size_t>(lane)]);
  }

 private:
  static u16 half(const void* registers, int i) {
    return static_cast<u16>(static_cast<const u32*>(registers)[i / 2] >> (i % 2 * 16));
  }
};

// m16n8kK: lane l holds rows l / 4 and l / 4 + 8; pairs of k from 2 * (l % 4), and + 8.
template <int K>
void multiply_m16n8(const Lanes& lanes, bool bf16) {
  u16 a[16 * K], b[K * 8];
  float a_wide[16 * K], b_wide[K * 8], d[16 * 8];
  for (int lane = 0; lane < 32; ++lane) {
    const int row = lane / 4, pair = 2 * (lane % 4);
    for (int i = 0; i < K / 2; ++i)
      a[(row + i / 2 % 2 * 8) * K + pair + i % 2 + i / 4 * 8] = lanes.a(lane, i);
    for (int i = 0; i < K / 4; ++i) b[(pair + i % 2 + i / 2 * 8) * 8 + row] = lanes.b(lane, i);
    for (int i = 0; i < 4; ++i) d[(row + i / 2 * 8) * 8 + pair + i % 2] = lanes.d(lane)[i];
  }
  widen(a, a_wide, 16 * K, bf16);
  widen(b, b_wide, K * 8, bf16);
  multiply_add(d, 8, a_wide, b_wide, 16, 8, K);
  tidy_nans(d, 16 * 8);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i)
      lanes.d(lane)[i] = d[(lane / 4 + i / 2 * 8) * 8 + 2 * (lane % 4) + i % 2];
}

// m8n8k4: four products, of quad pairs of lanes 4q..4q+3 and 4q+16..4q+19. Row-major A and
// column-major B: lane i % 4 + 4 * (i >= 4) of them holds row (column) i, all four of k.
void multiply_m8n8k4(const Lanes& lanes) {
  for (int quad = 0; quad < 4; ++quad) {
    const auto lane_of = [&](int i) { return 4 * quad + i % 4 + i / 4 * 16; };
    u16 a[8 * 4], b[4 * 8];
    float a_wide[8 * 4], b_wide[4 * 8], d[8 * 8];
    const auto row_of = [](int i, int e) { return i % 2 + e / 2 % 2 * 2 + i / 4 * 4; };
    const auto col_of = [](int i, int e) { return i % 4 / 2 * 2 + e % 2 + e / 4 * 4; };
    for (int i = 0; i < 8; ++i) {
      for (int k = 0; k < 4; ++k) {
        a[i * 4 + k] = lanes.a(lane_of(i), k);
        b[k * 8 + i] = lanes.b(lane_of(i), k);
      }
      for (int e = 0; e < 8; ++e) d[row_of(i, e) * 8 + col_of(i, e)] = lanes.d(lane_of(i))[e];
    }
    widen(a, a_wide, 32, false);
    widen(b, b_wide, 32, false);
    multiply_add(d, 8, a_wide, b_wide, 8, 8, 4);
    tidy_nans(d, 64);
    for (int i = 0; i < 8; ++i)
      for (int e = 0; e < 8; ++e) lanes.d(lane_of(i))[e] = d[row_of(i, e) * 8 + col_of(i, e)];
  }
}

}  // namespace

void World::mma(MmaKind kind, float* d, const u32* a, const u32* b) {
  Warp& warp = *current_->warp;
  // The second half of the meeting's places is a warpgroup's: a warp keeps B there.
  warp.meeting.out[static_cast<std::size_t>(current_->lane + 32)] = const_cast<u32*>(b);
  meet(warp.meeting, warp.lanes, 32, name_of(kind), a, d, 0, [&] {
    const Lanes lanes{warp.meeting};
    ++counters_[Op::mma].executed;
    switch (kind) {
      case MmaKind::M16N8K16_F16:
      case MmaKind::M16N8K16_BF16:
        return multiply_m16n8<16>(lanes, kind == MmaKind::M16N8K16_BF16);
      case MmaKind::M16N8K8_F16:
        return multiply_m16n8<8>(lanes, false);
      case MmaKind::M8N8K4_F16:
        return multiply_m8n8k4(lanes);
    }
  });
}

u32 World::shuffle(u32 value, int source_lane) {
  Warp& warp = *current_->warp;
  if (source_lane < 0 || source_lane > 31)
    fail("divergence", "shfl.sync", "", "there is no lane " + std::to_string(source_lane));
  u32 received = 0;
  const u32 sent = value;
  meet(warp.meeting, warp.lanes, 32, "shfl.sync", &sent, &received, static_cast<u32>(source_lane),
       [&] {
         const Meeting& meeting = warp.meeting;
         for (std::size_t lane = 0; lane < 32; ++lane)
           std::memcpy(meeting.out[lane], meeting.in[meeting.value[lane]], sizeof(u32));
       });
  return received;
}

}  // namespace fastgemm::emulated

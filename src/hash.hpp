// 128-bit FNV-1a: names and checksums of cached content, not a defence against an adversary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace fastgemm {

struct Hash128 {
  std::uint64_t high, low;

  bool operator==(const Hash128& o) const { return high == o.high && low == o.low; }
  bool operator!=(const Hash128& o) const { return !(*this == o); }

  std::string hex() const {
    std::string text(32, '0');
    for (int i = 0; i < 16; ++i) {
      text[15 - i] = "0123456789abcdef"[(high >> (4 * i)) & 15];
      text[31 - i] = "0123456789abcdef"[(low >> (4 * i)) & 15];
    }
    return text;
  }
};

class Hasher {
 public:
  Hasher& add(std::string_view bytes) {
    for (unsigned char byte : bytes) state_ = (state_ ^ byte) * prime();
    return *this;
  }

  // The length goes in too, so that "ab","c" and "a","bc" differ.
  Hasher& add_field(std::string_view bytes) {
    const std::uint64_t size = bytes.size();
    for (int i = 0; i < 8; ++i) state_ = (state_ ^ ((size >> (8 * i)) & 0xff)) * prime();
    return add(bytes);
  }

  Hash128 value() const {
    return {static_cast<std::uint64_t>(state_ >> 64), static_cast<std::uint64_t>(state_)};
  }

 private:
  __extension__ using Wide = unsigned __int128;
  static constexpr Wide prime() { return (static_cast<Wide>(1) << 88) + 0x13b; }

  Wide state_ = (static_cast<Wide>(0x6c62272e07bb0142u) << 64) + 0x62b821756295c58du;
};

inline Hash128 hash128(std::string_view bytes) { return Hasher().add(bytes).value(); }

}  // namespace fastgemm

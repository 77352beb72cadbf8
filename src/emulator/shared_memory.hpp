// A CTA's shared memory, and of every four bytes who wrote them last and who has read them since.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "emulator/clocks.hpp"

namespace fastgemm::emulated {

// Names a filling of a stage: the mbarrier that the copy engine counts at, or that a thread waited
// for before it stored; and the phase.
inline std::uint32_t origin_of(std::uint32_t barrier_offset, std::uint32_t phase) {
  return (barrier_offset << 8 | (phase & 0xff)) + 1;
}

// Four bytes: the finest that two threads of the device code write side by side.
struct Granule {
  static constexpr int BYTES = 4;
  static constexpr int INLINE_READS = 4;

  Epoch write;               // agent none: nothing has been written here
  std::uint32_t origin = 0;  // the stage that the bytes belong to, see origin_of()
  std::uint8_t reads = 0;    // since the write; those that a later one implies are left out
  bool more_reads = false;   // in SharedMemory::more_reads
  bool barrier = false;      // part of an mbarrier
  Epoch read[INLINE_READS];
};

class SharedMemory {
 public:
  // Contents as after a launch: nothing written, every byte a part of a NaN.
  void reset(int bytes);

  int bytes() const { return bytes_; }
  char* data(std::uint32_t offset) { return bytes_data_.data() + offset; }
  Granule& granule(std::uint32_t offset) { return granules_[offset / Granule::BYTES]; }

  // Adds a read, in the place of those that `ordered` says come before the reader.
  template <class Ordered>
  void add_read(Granule& g, Epoch reader, Ordered ordered) {
    for (int i = 0; i < g.reads; ++i)
      if (ordered(g.read[i])) {
        g.read[i] = reader;
        return;
      }
    if (g.reads < Granule::INLINE_READS) {
      g.read[g.reads++] = reader;
      return;
    }
    g.more_reads = true;
    more_reads_[&g].push_back(reader);
  }

  // The first read that `ordered` does not know of; null where it knows all.
  template <class Ordered>
  const Epoch* unordered_read(const Granule& g, Ordered ordered) const {
    for (int i = 0; i < g.reads; ++i)
      if (!ordered(g.read[i])) return &g.read[i];
    if (g.more_reads)
      for (const Epoch& e : more_reads_.at(&g))
        if (!ordered(e)) return &e;
    return nullptr;
  }

  void set_write(Granule& g, Epoch writer, std::uint32_t origin) {
    g.write = writer;
    g.origin = origin;
    g.reads = 0;
    if (g.more_reads) more_reads_.erase(&g);
    g.more_reads = false;
  }

 private:
  int bytes_ = 0;
  std::vector<char> bytes_data_;
  std::vector<Granule> granules_;
  std::unordered_map<const Granule*, std::vector<Epoch>> more_reads_;
};

}  // namespace fastgemm::emulated

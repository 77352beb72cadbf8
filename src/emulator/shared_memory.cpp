// A CTA's shared memory.
#include "emulator/shared_memory.hpp"

#include <algorithm>

namespace fastgemm::emulated {

void SharedMemory::reset(int bytes) {
  bytes_ = bytes;
  bytes_data_.assign(static_cast<std::size_t>(bytes), '\x7f');
  granules_.assign(static_cast<std::size_t>((bytes + Granule::BYTES - 1) / Granule::BYTES),
                   Granule());
  more_reads_.clear();
}

}  // namespace fastgemm::emulated

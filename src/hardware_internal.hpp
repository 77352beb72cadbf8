// Look-ups in the hardware table that the driver side needs: by the names that devices report.
#pragma once

#include <string_view>

#include "fastgemm/hardware.hpp"

namespace fastgemm {

// The card that the driver calls `device_name`, nullptr when the table has none. Strict: a name
// with a word that is not understood ("Laptop", "Ti", "MIG 1g.5gb") is another card.
const HardwareSpec* card_by_device_name(std::string_view device_name);

// The row for a live device, with `cc` as its own compute capability and with the Tensor Core rate
// of its card or, for cards that the table does not have, of its brand (GeForce halves the rate of
// fp32 accumulation).
ArchSpec arch_of_device(int cc, std::string_view device_name);

}  // namespace fastgemm

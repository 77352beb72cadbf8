// Runs all CTAs of a launch on the cores of this machine.
#pragma once

#include "emulator/counters.hpp"
#include "emulator/world.hpp"

namespace fastgemm::emulated {

// Throws the error of the first cluster that has one: the same one every time.
Counters run_grid(const Launch& launch, int workers);

}  // namespace fastgemm::emulated

// Programmatic dependent launch (sm_90): a kernel starts while the one before it still runs.
#pragma once

#include "fastgemm/device/types.cuh"

#ifdef FASTGEMM_EMULATE
#include "fastgemm/device/emulated/dependent_launch.cuh"
#else

namespace fastgemm::ptx {

// Waits until the kernels before this one have ended and their writes can be seen. Nothing happens
// where the launch did not ask for an early start.
FASTGEMM_DEVICE void griddepcontrol_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }

// Lets the next kernel start, as far as there is room on the SMs.
FASTGEMM_DEVICE void griddepcontrol_launch_dependents() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

}  // namespace fastgemm::ptx

#endif

// Host bodies of ptx/dependent_launch.cuh.
#pragma once

#include "fastgemm/device/emulated/machine.cuh"
#include "fastgemm/device/types.cuh"

namespace fastgemm::ptx {

FASTGEMM_DEVICE void griddepcontrol_wait() { emulated::machine().griddepcontrol_wait(); }
FASTGEMM_DEVICE void griddepcontrol_launch_dependents() {
  emulated::machine().griddepcontrol_launch_dependents();
}

}  // namespace fastgemm::ptx

"""Every PTX function has a host body, and no other device code knows of the emulator."""


import re

import pytest
from native import ROOT

DEVICE = ROOT / "include/fastgemm/device"
GROUPS = sorted(path.name for path in (DEVICE / "ptx").glob("*.cuh"))


def functions(group):
    """Names of the functions and members of a header that device code can call."""
    text = (DEVICE / group).read_text()
    return set(re.findall(r"FASTGEMM_DEVICE (?:static )?(?:constexpr )?\w+ (\w+)\(", text))


@pytest.mark.parametrize("group", GROUPS)
def test_every_instruction_has_a_host_body(group):
    assert (DEVICE / "ptx" / group).read_text().count("#ifdef FASTGEMM_EMULATE") == 1
    device, host = functions(f"ptx/{group}"), functions(f"emulated/{group}")
    assert device
    assert device <= host, f"emulated/{group} lacks {device - host}"


def test_nothing_outside_of_ptx_knows_of_the_emulator():
    for path in DEVICE.glob("*.cuh"):
        assert "EMULATE" not in path.read_text().upper(), path.name

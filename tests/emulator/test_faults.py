"""Faults planted in the device headers: the emulator has to catch each, and nothing without one."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from faults import FAULTS
from native import ROOT

CODE = """
import json, sys
sys.path.insert(0, sys.argv[1])
import fastgemm
from products import product
shape, arch, config = json.loads(sys.argv[2])
found, place = [], None
for seed in range(3):
    try:
        product(*shape, arch=arch, seed=seed, **config)
        found.append("nothing")
    except fastgemm.EmulatorError as error:
        found.append(error.kind)
        place = [error.kernel, error.cta, error.thread, error.instruction, error.address]
        if error.kind != "unwritten":
            for part in place:
                assert str(part) in str(error)
    except AssertionError:
        found.append("wrong")
print(json.dumps([found, place]))
"""


def emulate_with(headers, fault):
    arguments = [str(Path(__file__).parent), json.dumps([fault.shape, fault.arch, fault.config])]
    result = subprocess.run(
        [sys.executable, "-c", CODE, *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "FASTGEMM_DEVICE_HEADERS": str(headers), "FASTGEMM_CACHE_MB": "0"},
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return json.loads(result.stdout)


@pytest.fixture(scope="session")
def unharmed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("headers")
    shutil.copytree(ROOT / "include/fastgemm/device", folder / "fastgemm/device")
    return folder


def harmed(unharmed, folder, fault):
    shutil.copytree(unharmed, folder, dirs_exist_ok=True)
    path = folder / "fastgemm/device" / fault.file
    text = path.read_text()
    assert text.count(fault.old) == fault.times, f"{fault.file} has changed: plant the fault anew"
    path.write_text(text.replace(fault.old, fault.new))
    return folder


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_caught(name, unharmed, tmp_path):
    fault = FAULTS[name]
    found, _ = emulate_with(harmed(unharmed, tmp_path, fault), fault)
    assert set(found) <= set(fault.kinds), found


def test_nothing_is_caught_without_a_fault(unharmed):
    distinct = {json.dumps([f.shape, f.arch, f.config]): f for f in FAULTS.values()}
    for fault in distinct.values():
        assert set(emulate_with(unharmed, fault)[0]) == {"nothing"}, fault


def test_an_error_names_kernel_cta_thread_instruction_and_address(unharmed, tmp_path):
    fault = FAULTS["one row too many is written"]
    kinds, place = emulate_with(harmed(unharmed, tmp_path, fault), fault)
    kernel, cta, thread, instruction, address = place
    assert kinds[0] == "out of bounds"
    assert kernel.startswith("fastgemm_sm80_f16_kk_32x32x32")
    assert cta >= 0
    assert thread >= 0
    assert instruction == "st.global"
    assert int(address, 16) > 0

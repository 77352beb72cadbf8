"""Running compilers and other tools from tests."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


def run(*command, **options):
    """Runs a command; its output is returned, or shown when it fails."""
    command = [str(part) for part in command]
    result = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options
    )
    if result.returncode != 0:
        pytest.fail(f"{' '.join(command)}\n{result.stdout[-8000:]}", pytrace=False)
    return result.stdout


def need(condition, what):
    """Skips the test where a tool is missing; with FASTGEMM_TEST_ALL=1 that is a failure."""
    if not condition:
        (pytest.fail if os.environ.get("FASTGEMM_TEST_ALL") == "1" else pytest.skip)(what)

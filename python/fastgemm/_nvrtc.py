"""Where pip put libnvrtc: the nvidia-cuda-nvrtc wheels share the namespace package `nvidia`."""

import importlib.util
from pathlib import Path


def folders() -> list[str]:
    """The folders of installed nvidia wheels that hold a libnvrtc."""
    spec = importlib.util.find_spec("nvidia")
    roots = (spec.submodule_search_locations or []) if spec else []
    found = (path.parent for root in roots for path in Path(root).glob("*/lib/libnvrtc.so*"))
    return sorted({str(folder) for folder in found})

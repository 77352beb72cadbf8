"""All measurements of the README in one go.

python bench/all.py --out results && python bench/table.py results/*.json
"""

import subprocess
import sys
import time
from pathlib import Path

from machine import make_parser, require_gpu

HERE = Path(__file__).resolve().parent
RUNS = {
    "bench": ["--suite", "readme"],
    "epilogues": [],
    "host_overhead": [],
    "llama_block": [],
    "knobs": [],
    "compile_times": ["--suite", "readme", "--arch", "sm_80,sm_90,sm_120"],
}
QUICK = {
    "bench": ["--suite", "smoke", "--rounds", "3"],
    "epilogues": ["--rounds", "3", "--quick"],
    "host_overhead": ["--rounds", "3"],
    "llama_block": ["--rounds", "3", "--layers", "1", "--batch", "1"],
    "knobs": ["--rounds", "3"],
    "compile_times": ["--suite", "smoke"],
}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="few shapes and rounds, as a trial")
    parser.set_defaults(out=Path("results"))
    options = parser.parse_args()
    require_gpu()
    options.out.mkdir(parents=True, exist_ok=True)
    common = ["--dtype", options.dtype, "--layout", options.layout]
    if options.commit:
        common += ["--commit", options.commit]
    for name, arguments in RUNS.items():
        command = [sys.executable, HERE / f"{name}.py", *common, *arguments]
        command += [*(QUICK[name] if options.quick else []), "--out", options.out / f"{name}.json"]
        begin = time.monotonic()
        if subprocess.run(command).returncode:
            raise SystemExit(f"bench/{name}.py failed")
        print(f"{name}: {time.monotonic() - begin:.0f} s", flush=True)


if __name__ == "__main__":
    main()

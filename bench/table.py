"""Writes the README's benchmark tables from JSON files of bench.py, between two marker comments."""

import argparse
import json
from pathlib import Path

BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
README = Path(__file__).resolve().parent.parent / "README.md"


def peer_us(row):
    """The fastest time of cuBLAS, whoever called it."""
    times = [us for name, us in row["us"].items() if name != "fastgemm"]
    return min(times) if times else None


def table(results):
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    source = "measured" if results["ceilings"]["measured"] else "data sheet"
    bandwidth = results["ceilings"]["read_bytes_per_us"] / 1e6
    peak = results["ceilings"]["flops_per_us"] / 1e6
    lines = [
        f"{results['gpu']}, driver {results['driver']}, {results['dtype']}, layout "
        f"{results['layout'].upper()}, commit {results['commit']}, {results['date']} ({versions}). "
        f"Floor: {bandwidth:.2f} TB/s and {peak:.0f} TFLOP/s ({source}).",
        "",
        "| M x N x K | fastgemm us | cuBLAS us | speed over cuBLAS | TFLOP/s | share of floor |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in results["rows"]:
        ours, peer = row["us"].get("fastgemm"), peer_us(row)
        if ours is None or not row["error"]["fastgemm"] <= 1:
            raise SystemExit(f"fastgemm did not run or was wrong: {row}")
        rate = 2 * row["m"] * row["n"] * row["k"] / ours / 1e6
        against = f"{peer:.1f} | {peer / ours:.2f}" if peer else "not run | "
        lines.append(
            f"| {row['m']} x {row['n']} x {row['k']} | {ours:.1f} | {against} | {rate:.0f} |"
            f" {row['floor_us'] / ours:.2f} |"
        )
    host = ", ".join(f"{name} {us:.1f}" for name, us in results["host_us"].items())
    first = results["first_call_ms"]
    lines += [
        "",
        f"Host time of a warm call, us: {host}. First call of a process, once the CUDA context "
        f"exists: {first['cold']:.0f} ms when it compiles, {first['disk']:.1f} ms from the disk "
        "cache.",
    ]
    return "\n".join(lines)


def replace_section(readme, text):
    """The README's text with everything between the markers replaced."""
    head, found_begin, rest = readme.partition(BEGIN)
    _, found_end, tail = rest.partition(END)
    if not found_begin or not found_end:
        raise SystemExit(f"the README lacks {BEGIN} or {END}")
    return f"{head}{BEGIN}\n{text}\n{END}{tail}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--readme", type=Path, default=README)
    options = parser.parse_args()
    tables = [table(json.loads(path.read_text())) for path in options.results]
    options.readme.write_text(replace_section(options.readme.read_text(), "\n\n".join(tables)))


if __name__ == "__main__":
    main()

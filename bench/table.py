"""Writes the README's tables from the JSON files of the benchmarks, between two marker comments."""

import argparse
import json
from pathlib import Path
from statistics import geometric_mean, median

BEGIN, END = "<!-- benchmark: begin -->", "<!-- benchmark: end -->"
MANY = 40  # rows: more are shown by family
README = Path(__file__).resolve().parent.parent / "README.md"


def source(results):
    """Where the numbers come from."""
    machine = f"{results['gpu']}, driver {results['driver']}, " if "gpu" in results else ""
    return (
        f"{machine}{results['dtype']}, layout {results['layout'].upper()}, commit "
        f"{results['commit']}, {results['date']}."
    )


def lines_of(header, rows):
    """A Markdown table; the first column is text, the others are numbers."""
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return ["| " + " | ".join(cells) + " |" for cells in (header, rule, *rows)]


def peer_us(row):
    """The fastest time of cuBLAS, whoever called it."""
    times = [us for name, us in row["us"].items() if name != "fastgemm"]
    return min(times) if times else None


def by_shape(rows):
    cells = []
    for row in rows:
        ours, peer = row["us"]["fastgemm"], peer_us(row)
        rate = 2 * row["m"] * row["n"] * row["k"] / ours / 1e6
        cells.append(
            (
                f"{row['m']} x {row['n']} x {row['k']}",
                f"{ours:.1f}",
                f"{peer:.1f}" if peer else "not run",
                f"{peer / ours:.2f}" if peer else "",
                f"{rate:.0f}",
                f"{row['floor_us'] / ours:.2f}",
            )
        )
    header = ["M x N x K", "fastgemm us", "cuBLAS us", "speed over cuBLAS", "TFLOP/s"]
    return lines_of([*header, "share of floor"], cells)


def by_family(rows):
    cells = []
    for family in [*dict.fromkeys(row["family"] for row in rows), "all"]:
        of_family = [row for row in rows if family in (row["family"], "all") and peer_us(row)]
        speeds = [peer_us(row) / row["us"]["fastgemm"] for row in of_family]
        shares = [row["floor_us"] / row["us"]["fastgemm"] for row in of_family]
        means = (geometric_mean(speeds), min(speeds), max(speeds), geometric_mean(shares))
        cells.append((family, f"{len(of_family)}", *(f"{x:.2f}" for x in means)))
    header = ["family", "shapes", "speed over cuBLAS, mean", "least", "most"]
    return lines_of([*header, "share of floor, mean"], cells)


def speed(results):
    ceilings = results["ceilings"]
    origin = "measured" if ceilings["measured"] else "data sheet"
    versions = ", ".join(f"{name} {version}" for name, version in results["versions"].items())
    bandwidth, peak = ceilings["read_bytes_per_us"] / 1e6, ceilings["flops_per_us"] / 1e6
    rows = results["rows"]
    for row in rows:
        if "fastgemm" not in row["us"] or not row["error"]["fastgemm"] <= 1:
            raise SystemExit(f"fastgemm did not run or was wrong: {row}")
    lines = [
        f"**Speed.** {source(results)} Floor: {bandwidth:.2f} TB/s and {peak:.0f} TFLOP/s "
        f"({origin}). {versions}.",
        "",
        *(by_family(rows) if len(rows) > MANY else by_shape(rows)),
    ]
    if "host_us" in results:
        host = ", ".join(f"{name} {us:.1f}" for name, us in results["host_us"].items())
        first = results["first_call_ms"]
        lines += [
            "",
            f"**Host time** of a warm call, us: {host}. First call of a process, once the CUDA "
            f"context exists: {first['cold']:.0f} ms when it compiles, {first['disk']:.1f} ms from "
            "the disk cache.",
        ]
    return lines


def knobs(results):
    lines = [f"**Knobs.** Time added where a knob is off. {source(results)}"]
    for family in dict.fromkeys(row["family"] for row in results["rows"]):
        measured = [row for row in results["rows"] if row["family"] == family]
        names = dict.fromkeys(name for row in measured for name in row["us"])
        header = [f"family {family}"] + [" x ".join(map(str, row["shape"])) for row in measured]
        rows = []
        for name in names:
            if name == "as planned":
                cells = [f"{row['us'][name]:.1f} us" for row in measured]
            else:
                cells = [added(row["us"], name) for row in measured]
            rows.append((name, *cells))
        lines += ["", *lines_of(header, rows)]
    return lines


def added(us, name):
    return f"{100 * (us[name] / us['as planned'] - 1):+.1f} %" if name in us else ""


def compile_times(results):
    rows = []
    for arch in dict.fromkeys(row["arch"] for row in results["rows"]):
        kernels = [row for row in results["rows"] if row["arch"] == arch]
        ms = [row["compile_ms"] for row in kernels]
        rows.append(
            (
                arch,
                f"{len(kernels)}",
                f"{median(ms):.0f}",
                f"{max(ms):.0f}",
                f"{max(row['registers'] for row in kernels)}",
                f"{sum(row['spill_bytes'] > 0 for row in kernels)}",
            )
        )
    header = ["architecture", "kernels", "median ms", "most ms", "most registers", "with spills"]
    return [
        f"**Compile times** of the kernels picked for these shapes, on one core, NVRTC "
        f"{results['nvrtc']}, no cache. {source(results)}",
        "",
        *lines_of(header, rows),
    ]


def epilogues(results):
    shapes = list(dict.fromkeys(tuple(row["shape"]) for row in results["rows"]))
    header = ["epilogue"] + [" x ".join(map(str, shape)) for shape in shapes]
    rows = []
    for form in dict.fromkeys(row["form"] for row in results["rows"]):
        of_form = {tuple(row["shape"]): row for row in results["rows"] if row["form"] == form}
        wrong = [row for row in of_form.values() if not row["error"] <= 1]
        if wrong:
            raise SystemExit(f"wrong: {wrong[0]}")
        rows.append((form, *(beside(of_form[s]["us"]) if s in of_form else "" for s in shapes)))
    return [
        "**Epilogues.** Time added to the plain product; in brackets, how much faster than "
        f"torch.compile's product and pointwise kernel, and than cuBLASLt's own epilogue where "
        f"there is one. {source(results)}",
        "",
        *lines_of(header, rows),
    ]


def beside(us):
    peers = [us[name] / us["fastgemm"] for name in ("torch.compile", "cuBLASLt") if name in us]
    speeds = ", ".join(f"{speed:.2f}" for speed in peers)
    return f"{100 * (us['fastgemm'] / us['product'] - 1):+.1f} % ({speeds})"


def host_overhead(results):
    rows = [
        (framework, call, f"{us:.1f}")
        for framework, calls in results["us"].items()
        for call, us in calls.items()
    ]
    lines = [
        f"**Host time** of a warm call of a small product. {source(results)}",
        "",
        *lines_of(["from", "call", "us"], rows),
    ]
    in_jit = results.get("in_jit_us", {})
    if in_jit:
        names = dict.fromkeys(name for us in in_jit.values() for name in us)
        rows = [(n, *(f"{us[n]:.1f}" if n in us else "" for us in in_jit.values())) for n in names]
        what = "One of many products in a jitted program, us: of a run alone, and of runs in a row."
        lines += ["", what, ""]
        lines += lines_of(["product", *in_jit], rows)
    return lines


def llama_block(results):
    rows = []
    for row in results["rows"]:
        (name, theirs), (_, mine) = row["tokens_per_second"].items()
        rate = f"{mine:.0f}", f"{theirs:.0f} ({name})", f"{mine / theirs:.2f}"
        rows.append((row["framework"], f"{row['batch']}", *rate))
    header = ["framework", "sequences", "tokens/s", "its own products", "ratio"]
    return [
        f"**Decoding** through {results['layers']} blocks of a Llama 3 8B, under a CUDA graph in "
        f"PyTorch and in one jitted program in JAX. {source(results)}",
        "",
        *lines_of(header, rows),
    ]


SECTIONS = {
    "bench": speed,
    "epilogues": epilogues,
    "host_overhead": host_overhead,
    "llama_block": llama_block,
    "knobs": knobs,
    "compile_times": compile_times,
}


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
    found = [json.loads(path.read_text()) for path in options.results]
    found.sort(key=lambda results: list(SECTIONS).index(results["kind"]))
    sections = ["\n".join(SECTIONS[results["kind"]](results)) for results in found]
    options.readme.write_text(replace_section(options.readme.read_text(), "\n\n".join(sections)))


if __name__ == "__main__":
    main()

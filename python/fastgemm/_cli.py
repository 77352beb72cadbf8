"""The commands of `python -m fastgemm`: info, demo, plan, compile, emulate, cache, cmake-dir."""

import argparse
import importlib
import sys
from pathlib import Path

import fastgemm

FASTGEMM_ERRORS = (fastgemm.CompileError, fastgemm.DeviceError, fastgemm.EmulatorError)


def main(argv: list[str] | None = None) -> int:
    """Runs one command; 2 and one line on stderr where the user or the machine is at fault."""
    arguments = make_parser().parse_args(argv)
    try:
        return arguments.run(arguments) or 0
    except (ValueError, TypeError, OSError, *FASTGEMM_ERRORS) as error:
        print(f"fastgemm: error: {str(error).splitlines()[0]}", file=sys.stderr)
        return 2


class Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"{self.prog}: error: {message} (see {self.prog} --help)\n")


def make_parser() -> Parser:
    parser = Parser(prog="fastgemm", description="Matrix products on Tensor Cores.")
    parser.add_argument("--version", action="version", version=f"fastgemm {fastgemm.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    def add(name, run, text):
        command = commands.add_parser(name, help=text, description=text)
        command.set_defaults(run=run)
        return command

    add("info", info, "versions, driver, NVRTC, GPUs and kernel cache")

    command = add("demo", demo, "plan, compile, run and check one product (no GPU: emulated)")
    command.add_argument("--size", nargs=3, type=int, metavar="N")

    command = add("plan", show_plan, "which kernel a product gets, and why")
    add_problem(command)

    command = add("compile", compile_kernel, "compile a product's kernel and show its resources")
    add_problem(command)
    command.add_argument("--source", action="store_true", help="print the generated source")
    command.add_argument("--ptx", action="store_true", help="print the PTX")
    command.add_argument("--cubin", type=Path, metavar="FILE", help="write the machine code")

    command = add("emulate", emulate, "run a product's kernel on the CPU, check and count it")
    add_problem(command)
    command.add_argument("--seed", type=int, default=0, help="of the order in which threads run")

    command = add("cache", cache, "the folder of compiled kernels")
    command.add_argument("--clear", action="store_true", help="delete the cached kernels")

    add("cmake-dir", cmake_dir, "print the folder of the CMake package: -Dfastgemm_DIR=...")
    return parser


def add_problem(command):
    for name in "MNK":
        command.add_argument(name, type=int)
    command.add_argument("--dtype", default="bfloat16", help="float16 or bfloat16")
    command.add_argument(
        "--out-dtype", help="as --dtype (the default), float32, int8, float8_e4m3fn, float8_e5m2"
    )
    command.add_argument("--epilogue", help="an expression: 'gelu(acc + bias[n])'")
    command.add_argument("--layout", default="nt", help="nn, nt, tn or tt; nt is a linear layer")
    command.add_argument("--batch", type=int, default=1)
    command.add_argument("--arch", help="sm_80, H100 ...; default: this machine's GPU, else sm_90")
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="fix a field of GemmConfig: --set block_m=64 --set swizzle=false",
    )


def config_value(text: str):
    named = {"true": True, "false": False, "none": None}
    if text.lower() in named:
        return named[text.lower()]
    return int(text) if text.lstrip("-").isdigit() else text


def make_config(settings: list[str]) -> fastgemm.GemmConfig:
    fields = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        known = isinstance(getattr(fastgemm.GemmConfig, name, None), property)
        if not equals or not known:
            names = [n for n, v in vars(fastgemm.GemmConfig).items() if isinstance(v, property)]
            raise ValueError(f"--set {setting}: expected FIELD=VALUE, FIELD of {', '.join(names)}")
        fields[name] = config_value(value)
    try:
        return fastgemm.GemmConfig(**fields)
    except TypeError as error:
        raise ValueError(f"--set {' '.join(settings)}: a value has the wrong type") from error


def make_plan(arguments) -> fastgemm.Plan:
    return fastgemm.plan(
        arguments.M,
        arguments.N,
        arguments.K,
        dtype=arguments.dtype,
        out_dtype=arguments.out_dtype,
        layout=arguments.layout,
        batch=arguments.batch,
        arch=arguments.arch,
        config=make_config(arguments.set),
        epilogue=arguments.epilogue,
    )


def info(_):
    print(f"fastgemm {fastgemm.__version__} in {Path(fastgemm.__file__).parent}")
    driver = fastgemm.driver_info()
    print(
        f"driver   CUDA {driver.version}" if driver.available else f"driver   none: {driver.reason}"
    )
    try:
        nvrtc = fastgemm.nvrtc_info()
        archs = " ".join(f"sm_{cc}" for cc in nvrtc.archs)
        print(f"NVRTC    {nvrtc.version} at {nvrtc.path}\n         for {archs}")
    except fastgemm.CompileError as error:
        print(f"NVRTC    none: {str(error).splitlines()[0]}")
    for gpu in fastgemm.devices():
        print(
            f"GPU {gpu.device}    {gpu.name}, {gpu.arch.name}, {gpu.sms} SMs at "
            f"{gpu.clock_ghz:.2f} GHz, L2 {gpu.l2_bytes / 2**20:.0f} MiB, {gpu.dram_gbps:.0f} GB/s"
        )
    cache(argparse.Namespace(clear=False))


def cache(arguments):
    if arguments.clear:
        fastgemm.clear_cache(disk=True)
    found = fastgemm.cache_info()
    if found.disk_path:
        size = f"{found.disk_bytes / 2**20:.1f} MiB"
        print(f"cache    {found.disk_files} kernels, {size} in {found.disk_path}")
    else:
        print("cache    in memory only: no usable folder")


def show_plan(arguments):
    print(make_plan(arguments).explain())


def compile_kernel(arguments):
    kernel = fastgemm.compile(make_plan(arguments))
    if arguments.cubin:
        arguments.cubin.write_bytes(kernel.cubin)
    if arguments.source:
        print(kernel.source)
    if arguments.ptx:
        print(kernel.ptx)
    if not (arguments.source or arguments.ptx):
        print(resources(kernel))


def emulate(arguments):
    """Small integers, so that every element has one right value. 1 where the result is wrong."""
    numpy = need("numpy")
    generator = numpy.random.default_rng(0)
    bfloat16 = arguments.dtype == "bfloat16"
    dtype = need("ml_dtypes").bfloat16 if bfloat16 else numpy.dtype(arguments.dtype)

    def integers(rows, cols, transposed):
        shape = (cols, rows) if transposed else (rows, cols)
        whole = (arguments.batch, *shape) if arguments.batch > 1 else shape
        matrix = generator.integers(-3, 4, whole).astype(dtype)
        return matrix.swapaxes(-1, -2) if transposed else matrix

    a = integers(arguments.M, arguments.K, arguments.layout[0] == "t")
    b = integers(arguments.K, arguments.N, arguments.layout[1] == "t")
    d, report = fastgemm.emulate(
        a,
        b,
        out_dtype=arguments.out_dtype,
        arch=arguments.arch or (fastgemm.devices() or ["sm_90"])[0],
        config=make_config(arguments.set),
        seed=arguments.seed,
    )
    exact = a.astype(numpy.float64) @ b.astype(numpy.float64)
    right = bool((d == exact.astype(d.dtype)).all())
    print(report)
    print("right everywhere" if right else "WRONG")
    return 0 if right else 1


def need(module: str):
    try:
        return importlib.import_module(module)
    except ImportError:
        raise ValueError(f"the inputs need {module}: pip install {module}") from None


def resources(kernel: fastgemm.Kernel) -> str:
    origin = (
        "from the disk cache" if kernel.from_disk else f"compiled in {kernel.compile_ms:.0f} ms"
    )
    return (
        f"{kernel.name}\n{kernel.target}, {origin} by NVRTC {kernel.nvrtc_version}: "
        f"{kernel.registers} registers a thread, {kernel.spill_bytes} bytes spilled, "
        f"{kernel.shared_bytes} bytes of shared memory, {len(kernel.cubin)} bytes of machine code"
    )


def cmake_dir(_):
    print(fastgemm.cmake_dir())


def demo(arguments):
    from . import _demo

    return _demo.run(arguments.size)

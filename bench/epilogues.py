"""What a fused epilogue costs over the plain product, and against torch.compile and cuBLASLt's own.

python bench/epilogues.py --dtype bfloat16 --out epilogues.json
"""

import warnings

import fastgemm
from machine import ceilings, gpu, make_parser, provenance, require_gpu, torch, write
from timing import Operands, microseconds

# M, N, K: a large product, a prefill, decoding.
SHAPES = [(4096, 8192, 4096), (8192, 8192, 8192), (512, 28672, 4096), (64, 28672, 4096)]
SHAPES += [(16, 28672, 4096), (16, 4096, 4096), (1, 28672, 4096)]
SCALE = 0.5


class Form:
    """One epilogue: fused, as torch says it, and where there is one, as cuBLASLt has it."""

    def __init__(self, fused, pointwise, cublaslt=None, halves=False, out_dtype=None):
        self.fused, self.pointwise, self.cublaslt = fused, pointwise, cublaslt
        self.halves, self.out_dtype = halves, out_dtype


def silu_and_multiply(y):
    gate, up = y.chunk(2, dim=-1)
    return torch.nn.functional.silu(gate) * up


def forms():
    gelu = torch.nn.functional.gelu
    fp8 = torch.float8_e4m3fn
    return {
        "bias": Form(
            lambda x: {"bias": x.bias},
            lambda y, x: y + x.bias,
            lambda a, b, x: torch.addmm(x.bias, a, b),
        ),
        "bias, gelu": Form(
            lambda x: {"bias": x.bias, "activation": "gelu"},
            lambda y, x: gelu(y + x.bias),
        ),
        "bias, gelu_tanh": Form(
            lambda x: {"bias": x.bias, "activation": "gelu_tanh"},
            lambda y, x: gelu(y + x.bias, approximate="tanh"),
            lambda a, b, x: torch._addmm_activation(x.bias, a, b, use_gelu=True),
        ),
        "bias, relu": Form(
            lambda x: {"bias": x.bias, "activation": "relu"},
            lambda y, x: torch.relu(y + x.bias),
            lambda a, b, x: torch._addmm_activation(x.bias, a, b),
        ),
        "residual": Form(
            lambda x: {"residual": x.residual},
            lambda y, x: y + x.residual,
            lambda a, b, x: torch.addmm(x.residual, a, b),
        ),
        "SwiGLU, blocked": Form(
            lambda x: {"activation": "silu", "gated": "blocked"},
            lambda y, x: silu_and_multiply(y),
            halves=True,
        ),
        "SwiGLU, interleaved": Form(
            lambda x: {"activation": "silu", "gated": "interleaved"},
            lambda y, x: torch.nn.functional.silu(y[..., ::2]) * y[..., 1::2],
            halves=True,
        ),
        "float8_e4m3fn, scaled": Form(
            lambda x: {"out_scale": SCALE},
            lambda y, x: (y.float() / SCALE).clamp(-448, 448).to(fp8),
            out_dtype=fp8,
        ),
        "amax, bias": Form(
            lambda x: {"bias": x.bias, "amax": x.amax},
            lambda y, x: (y + x.bias, (y + x.bias).abs().amax()),
        ),
        "keep, bias, gelu": Form(
            lambda x: {"bias": x.bias, "activation": "gelu", "keep": x.kept},
            lambda y, x: (y + x.bias, gelu(y + x.bias)),
        ),
    }


class Extras:
    """What a form reads and writes beside a and b; one for each set of operands."""

    def __init__(self, form, d):
        m, n = d.shape
        self.bias = torch.randn(n, device="cuda", dtype=d.dtype)
        self.residual, self.kept = torch.randn_like(d), torch.empty_like(d)
        self.amax = torch.zeros(1, device="cuda")
        shape = (m, n // 2) if form.halves else (m, n)
        self.out = torch.empty(shape, device="cuda", dtype=form.out_dtype or d.dtype)


def worst_error(form, operands, sampled_rows=64):
    """The largest error in units of the rounding of the result plus that of float32 sums."""
    a, b, _, x = operands.sets[0]
    got = fastgemm.gemm(a, b, out=x.out, **form.fused(x))
    picked = torch.linspace(0, a.shape[0] - 1, min(a.shape[0], sampled_rows), device="cuda").long()
    rows = Extras.__new__(Extras)
    rows.bias, rows.residual = x.bias.double(), x.residual[picked].double()
    exact = form.pointwise(a[picked].double() @ b.double(), rows)
    exact = (exact[-1] if form.fused(x).get("keep") is not None else exact[0]) if isinstance(
        exact, tuple
    ) else exact  # fmt: skip
    exact, got = exact.double(), got[picked].double()
    step = torch.finfo(x.out.dtype).eps / 2
    sums = 2 * a.shape[1] ** 0.5 * torch.finfo(torch.float32).eps
    size = a[picked].double().abs() @ b.double().abs()
    slack = sums * (size[:, : exact.shape[1]] + size[:, -exact.shape[1] :]) * (1 + exact.abs())
    # Beside a value between two of float8, the reference may take the other one.
    steps = 2 if form.out_dtype else 1
    return ((got - exact).abs() / (steps * step * exact.abs() + slack + 1e-3)).max().item()


def measure(shape, name, form, options, ceiling):
    operands = Operands(*shape, options.dtype, options.layout)
    operands.sets = [(a, b, d, Extras(form, d)) for a, b, d in operands.sets]
    torch.compiler.reset()  # or it takes all of this for one function, and gives up on the ninth
    compiled = torch.compile(lambda a, b, x: form.pointwise(a @ b, x), dynamic=False)
    calls = {
        "product": lambda a, b, d, x: fastgemm.gemm(a, b, out=d),
        "fastgemm": lambda a, b, d, x: fastgemm.gemm(a, b, out=x.out, **form.fused(x)),
        "torch.compile": lambda a, b, d, x: compiled(a, b, x),
    }
    if form.cublaslt:
        calls["cuBLASLt"] = lambda a, b, d, x: form.cublaslt(a, b, x)
    row = {"form": name, "shape": shape, "error": worst_error(form, operands)}
    row["us"] = microseconds(calls, operands, operands.floor_us(ceiling), options.rounds)
    us = row["us"]
    others = {key: f"{us[key] / us['fastgemm']:.2f} x" for key in us if key in PEERS}
    cost = 100 * (us["fastgemm"] / us["product"] - 1)
    wrong = "" if row["error"] <= 1 else f"  WRONG: {row['error']:.2f}"
    text = ", ".join(f"{key} {value}" for key, value in others.items())
    print(f"{'x'.join(map(str, shape)):17} {name:22} {cost:+6.1f} %  {text}{wrong}", flush=True)
    return row


PEERS = ("torch.compile", "cuBLASLt")


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true", help="two small shapes, as a trial")
    parser.add_argument("--forms", help="separated by semicolons; default: all")
    options = parser.parse_args()
    require_gpu()
    warnings.filterwarnings("ignore", module="torch")
    chosen = options.forms.split(";") if options.forms else None
    results = {**provenance("epilogues", options), **gpu(), "rows": []}
    for shape in [(512, 1024, 512), (16, 1024, 512)] if options.quick else SHAPES:
        for name, form in forms().items():
            if chosen is None or name in chosen:
                results["rows"].append(measure(shape, name, form, options, ceilings()))
                torch.cuda.empty_cache()
        write(results, options.out)  # also of what is done when it is stopped


if __name__ == "__main__":
    main()

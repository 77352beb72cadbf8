"""Products of small integers on the GPU: sums are exact, every element has one right value."""

import fastgemm
import torch

LAYOUTS = ("nn", "nt", "tn", "tt")


def integers(*shape, dtype, seed, most=3):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    return torch.randint(-most, most + 1, shape, device="cuda", generator=generator).to(dtype)


def operands(m, n, k, layout, dtype, seed=0):
    a = integers(*((m, k) if layout[0] == "n" else (k, m)), dtype=dtype, seed=seed)
    b = integers(*((k, n) if layout[1] == "n" else (n, k)), dtype=dtype, seed=seed + 1)
    return (a if layout[0] == "n" else a.t()), (b if layout[1] == "n" else b.t())


def among_nans(m, n, row_stride, col_stride, dtype, offset=0, seed=0):
    """An (m, n) view at these strides; NaNs lie before and behind it, and between its rows."""
    span = (m - 1) * row_stride + (n - 1) * col_stride + 1
    store = torch.full((span + offset + 64,), float("nan"), device="cuda", dtype=dtype)
    view = store.as_strided((m, n), (row_stride, col_stride), offset)
    if row_stride >= n * col_stride > 0 or col_stride >= m * row_stride > 0:
        view.copy_(integers(m, n, dtype=dtype, seed=seed))
    else:  # elements share places: they cannot be written by way of the view
        store[offset : offset + span] = integers(span, dtype=dtype, seed=seed)
    return view


def expected(a, b, out_dtype, c=None, alpha=1.0, beta=0.0):
    exact = alpha * (a.double() @ b.double())
    if c is not None:
        exact = exact + beta * c.double()
    return exact.to(out_dtype)


class Guarded:
    """An output of NaNs inside a buffer of canaries: shows what was not written, or wrongly was."""

    CANARY = 7.0

    def __init__(self, m, n, dtype, pad=8, column_major=False):
        rows, cols = (n, m) if column_major else (m, n)
        self.buffer = torch.full(
            (rows + 2, cols + 2 * pad), self.CANARY, device="cuda", dtype=dtype
        )
        view = self.buffer[1 : 1 + rows, pad : pad + cols]
        view.fill_(float("nan"))
        self.inside = torch.zeros_like(self.buffer, dtype=torch.bool)
        self.inside[1 : 1 + rows, pad : pad + cols] = True
        self.out = view.t() if column_major else view

    def check(self, want, what):
        got = self.out
        assert torch.equal(got, want), (
            f"{what}: {(got != want).sum().item()} of {got.numel()} elements differ, first at "
            f"{(got != want).nonzero()[:1].tolist()}; {got.isnan().sum().item()} were not written"
        )
        self.check_outside(what)

    def check_close(self, want, slack, what):
        """Each element within one rounding of the float64 `want`, plus `slack`."""
        got = self.out.double()
        error = (got - want).abs()
        bound = torch.finfo(self.out.dtype).eps / 2 * want.abs() * 1.001 + slack
        right = (error <= bound) | (got == want) | (got.isnan() & want.isnan())
        assert right.all(), (
            f"{what}: {(~right).sum().item()} of {got.numel()} elements are wrong, first at "
            f"{(~right).nonzero()[:1].tolist()}: {got[~right][:1].tolist()}, not "
            f"{want[~right][:1].tolist()}"
        )
        self.check_outside(what)

    def check_outside(self, what):
        outside = self.buffer[~self.inside]
        assert (outside == self.CANARY).all(), f"{what}: wrote outside of D"


def check_product(m, n, k, layout, dtype, config=None, out_dtype=None, seed=0, **guard):
    a, b = operands(m, n, k, layout, dtype, seed)
    out = Guarded(m, n, out_dtype or dtype, **guard)
    returned = fastgemm.gemm(a, b, out=out.out, config=config)
    assert returned is out.out
    out.check(expected(a, b, out_dtype or dtype), f"{m}x{n}x{k} {layout} {dtype} {config}")


def check_every_offset_and_pitch(config_a, config_b):
    """A product's A, and then the B of its transpose, wherever their rows may begin."""
    m, n, k, dtype = 96, 80, 72, torch.bfloat16
    b = operands(m, n, k, "nt", dtype)[1]
    for offset in range(9):
        for pitch in (72, 73, 74, 76, 80, 99):
            for strides in ((pitch, 1), (1, pitch + 24)):
                a = among_nans(m, k, *strides, dtype, offset)
                for x, y, config in ((a, b, config_a), (b.t(), a.t(), config_b)):
                    out = Guarded(x.shape[0], y.shape[1], dtype)
                    fastgemm.gemm(x, y, out=out.out, config=config)
                    out.check(expected(x, y, dtype), f"offset {offset} strides {strides}")

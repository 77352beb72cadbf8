"""Times products on a GPU: operands from memory, not L2; CUDA graphs; turns; medians."""

import random
import statistics
from dataclasses import dataclass, field

from machine import torch

MAX_SETS = 64
GRAPH_US = 5000.0  # a graph this long makes the cost of its own launch and of the events invisible


@dataclass
class Operands:
    """Sets of (a, b, d) used in rotation, so that 3 x L2 passes between two uses of one set.

    Products of less than 3 * L2 / MAX_SETS bytes stay in L2 in part; that is so for every provider.
    """

    m: int
    n: int
    k: int
    dtype: str
    layout: str
    sets: list = field(init=False)

    def __post_init__(self):
        torch.manual_seed(0)
        kind = {"dtype": getattr(torch, self.dtype), "device": "cuda"}

        def operand(rows, cols, letter):
            if letter == "n":
                return torch.randn(rows, cols, **kind)
            return torch.randn(cols, rows, **kind).t()

        l2 = torch.cuda.get_device_properties(torch.cuda.current_device()).L2_cache_size
        count = min(MAX_SETS, max(2, 1 + 3 * l2 // self.bytes))
        self.sets = [
            (
                operand(self.m, self.k, self.layout[0]),
                operand(self.k, self.n, self.layout[1]),
                torch.empty(self.m, self.n, **kind),
            )
            for _ in range(count)
        ]

    @property
    def bytes(self):
        return 2 * (self.m * self.k + self.k * self.n + self.m * self.n)

    @property
    def flops(self):
        return 2 * self.m * self.n * self.k

    def floor_us(self, ceiling):
        """What the product takes at least: every byte once, every flop at the peak rate."""
        return max(self.bytes / ceiling["read_bytes_per_us"], self.flops / ceiling["flops_per_us"])


def worst_error(call, operands, sampled_rows=64):
    """The largest error of `call`, in units of one rounding plus the drift of float32 sums.

    Elementwise on sampled rows, over a d poisoned with NaN; above 1 (or NaN) is wrong.
    """
    a, b, d = operands.sets[0]
    d.fill_(float("nan"))
    call(a, b, d)
    picked = torch.linspace(0, operands.m - 1, min(operands.m, sampled_rows), device="cuda").long()
    rows, b = a[picked].double(), b.double()
    exact = rows @ b
    rounding = torch.finfo(d.dtype).eps / 2 * exact.abs()
    sums = 2 * operands.k**0.5 * torch.finfo(torch.float32).eps * (rows.abs() @ b.abs())
    tiny = torch.finfo(d.dtype).tiny
    return ((d[picked].double() - exact).abs() / (rounding + sums + tiny)).max().item()


class Loop:
    """Stands in for a graph where a library refuses to be captured: its host time counts too."""

    def __init__(self, call, sets, rotations):
        self.call, self.sets, self.rotations = call, sets, rotations

    def replay(self):
        for _ in range(self.rotations):
            for arrays in self.sets:
                self.call(*arrays)


def capture(call, operands, expected_us):
    """A CUDA graph of whole rotations of `call`, and the number of products in it."""
    sets = operands.sets
    rotations = max(1, round(GRAPH_US / (expected_us + 3.0) / len(sets)))
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for arrays in sets[:3]:
            call(*arrays)
    stream.synchronize()
    loop = Loop(call, sets, rotations)
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph, stream=stream):
            loop.replay()
    except NotImplementedError:  # CuPy's cuBLAS
        graph = loop
    return graph, rotations * len(sets)


def microseconds(calls, operands, expected_us, rounds=9):
    """Median microseconds of a product for each named call; calls take turns in every round.

    In an order of chance: who follows fast calls finds a GPU that is throttled by its power limit.
    """
    graphs = {name: capture(call, operands, expected_us) for name, call in calls.items()}
    samples = {name: [] for name in calls}
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    order, dice = list(graphs), random.Random(0)
    for round_number in range(rounds + 1):
        dice.shuffle(order)
        for name in order:
            graph, products = graphs[name]
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            if round_number > 0:
                samples[name].append(begin.elapsed_time(end) * 1e3 / products)
    return {name: statistics.median(values) for name, values in samples.items()}

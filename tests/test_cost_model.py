"""The planner's picks against what was measured on an H200: bench/results/h200_candidates.json."""

import json
import math
import statistics
from pathlib import Path

import fastgemm
import pytest

MEASURED = Path(__file__).parents[1] / "bench" / "results" / "h200_candidates.json"


@pytest.fixture(scope="module")
def measured():
    results = json.loads(MEASURED.read_text())
    fields = results["columns"][:-1]

    def kernels(row):
        return [(dict(zip(fields, values, strict=True)), us) for *values, us in row["measured"]]

    return [(row, kernels(row)) for row in results["rows"]]


def plan_of(row, config=None):
    shape = row["m"], row["n"], row["k"]
    return fastgemm.plan(*shape, dtype="bfloat16", arch="H200", config=config)


def microseconds_of_pick(row, kernels):
    """Of the planner's pick, as measured; None where it was not."""
    pick = plan_of(row).config
    for fields, us in kernels:
        if all(getattr(pick, name) == value for name, value in fields.items()):
            return us
    return None


def test_picks_are_close_to_the_best_that_was_measured(measured):
    newest = {(row["m"], row["n"], row["k"]): (row, kernels) for row, kernels in measured}
    losses = []
    for row, kernels in newest.values():
        us = microseconds_of_pick(row, kernels)
        if us is not None:
            losses.append(math.log(us / min(us for _, us in kernels)))
    print(f"{len(losses)} of {len(newest)} picks measured, mean loss {statistics.mean(losses)}")
    assert len(losses) >= 0.75 * len(newest)
    assert statistics.mean(losses) < 0.03
    assert max(losses) < math.log(1.3)


# Of weights whose rows begin anywhere, bfloat16, microseconds: both operands copied, and shifted.
ODD = [
    ((1, 28672, 4095, "nt"), 175, 77),
    ((4, 28672, 4095, "nt"), 278, 87),
    ((16, 28672, 4095, "nt"), 176, 80),
    ((64, 28672, 4095, "nt"), 178, 83),
    ((128, 28672, 4095, "nt"), 183, 96),
    ((256, 28672, 4095, "nt"), 205, 128),
    ((512, 28672, 4095, "nt"), 273, 243),
    ((16, 4096, 14335, "nt"), 90, 43),
    ((64, 4096, 14335, "nt"), 92, 46),
    ((128, 4096, 14335, "nt"), 96, 56),
    ((16, 4096, 4095, "nt"), 26, 18),
    ((64, 4096, 4095, "nt"), 27, 19),
    ((256, 4096, 14335, "nt"), 106, 78),
    ((256, 4096, 4095, "nt"), 32, 30),
    ((512, 4096, 14335, "nt"), 144, 133),
    ((512, 4096, 4095, "nt"), 43, 48),
    ((300, 3836, 1533, "nt"), 17, 21),
    ((1000, 1001, 1001, "nt"), 11, 15),
    ((2047, 2047, 2047, "nt"), 40, 46),
    ((1, 28671, 4096, "nn"), 175, 68),
    ((4, 28671, 4096, "nn"), 178, 69),
    ((16, 28671, 4096, "nn"), 178, 68),
    ((64, 28671, 4096, "nn"), 181, 87),
    ((128, 28671, 4096, "nn"), 188, 105),
    ((256, 28671, 4096, "nn"), 219, 140),
    ((64, 4095, 14336, "nn"), 94, 42),
]


@pytest.mark.parametrize("product, before, shifted", ODD)
def test_rows_are_shifted_where_that_was_faster(product, before, shifted):
    *shape, layout = product
    plan = fastgemm.plan(*shape, dtype="bfloat16", layout=layout, arch="H200")
    assert plan.config.shift_b == (shifted < before)


def test_predictions_order_the_kernels_of_a_product(measured):
    """Of two kernels that took a fifth more or less than each other, the model knows which."""
    right = wrong = 0
    for row, kernels in measured:
        predicted = []
        for fields, us in kernels:
            try:
                plan = plan_of(row, fastgemm.GemmConfig(**fields))
            except ValueError:  # a limit that has been drawn since
                continue
            predicted.append((plan.cost["total_us"], us))
        for i, (guess, us) in enumerate(predicted):
            for other_guess, other in predicted[:i]:
                if max(us, other) > 1.2 * min(us, other):
                    right += (guess < other_guess) == (us < other)
                    wrong += (guess < other_guess) != (us < other)
    print(f"{right} of {right + wrong} pairs in the right order")
    assert right > 0.95 * (right + wrong)

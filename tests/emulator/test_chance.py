"""Products of chance with knobs of chance: right, or refused; never an access that must not be.

A few by default. FASTGEMM_CHANCE_SECONDS=600 goes on for so long, FASTGEMM_CHANCE_SEED=7 elsewhere.
"""

import os
import random
import time

import pytest
from products import LAYOUTS, product

EDGES = [1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 33, 40, 63, 64, 65, 100, 127, 128, 129, 200, 257]
KNOBS = dict(
    split_k=[1, 2, 3, 5],
    num_stages=[1, 2, 3, 5],
    staged_stores=[True, False],
    raster_group=[0, 2, 8],
    block_m=[32, 64, 128],
    block_n=[32, 64, 128],
    block_k=[32, 64, 128],
    shift_a=[True, False],
    shift_b=[True, False],
)
KNOBS_SM90 = KNOBS | dict(
    family=["sm90", "sm80", "gemv"],
    block_m=[8, 24, 56, 64, 96, 128, 192, 256],
    block_n=[8, 16, 24, 40, 64, 96, 128, 208],
    swizzle_bytes=[64, 32, 16],
    swap_ab=[True, False],
    repack_a=[True],
    repack_b=[True],
    cluster_m=[1, 2],
    cluster_n=[1, 2],
    cluster_k=[1, 2, 4],
    multicast=[False],
    tma_stores=[True, False],
    dependent_launch=[True, False],
    prefetch=[True, False],
    ping_pong=[True, False],
    persistent=[True, False],
)


def extent(pick):
    return pick.choice([*EDGES, pick.randint(1, 300)])


def product_of_chance(pick):
    """(m, n, k) and the options of product()."""
    arch = pick.choice(["sm_90"] * 4 + ["sm_80", "sm_75", "sm_70"])
    shape = extent(pick), extent(pick), pick.choice([extent(pick), pick.randint(1, 2000)])
    options = dict(
        arch=arch,
        layout=pick.choice(LAYOUTS),
        dtype=pick.choice(["float16", "bfloat16"] if arch in ("sm_90", "sm_80") else ["float16"]),
        gap=pick.choice([8, 8, 8, 1, 4]),
        seed=pick.randint(0, 99),
        out_transposed=pick.random() < 0.2,
    )
    if pick.random() < 0.3:
        options["out_dtype"] = "float32"
    options |= pick.choice([{}, {}, {"beta": -2.0}, {"fused": True}])
    knobs = KNOBS_SM90 if arch == "sm_90" else KNOBS
    for name in pick.sample(sorted(knobs), pick.choice([0, 1, 2, 3, 4])):
        options[name] = pick.choice(knobs[name])
    return shape, options


@pytest.mark.parametrize("share", range(2))  # for two processors
def test_products_of_chance(share):
    seconds = float(os.environ.get("FASTGEMM_CHANCE_SECONDS", "0"))
    pick = random.Random(f"{os.environ.get('FASTGEMM_CHANCE_SEED', '3')} {share}")
    end, right, refused = time.monotonic() + seconds, 0, 0
    while right < 6 or time.monotonic() < end:
        shape, options = product_of_chance(pick)
        try:
            product(*shape, **options)
            right += 1
        except ValueError:  # a config that cannot be
            refused += 1
        except Exception as error:
            raise AssertionError(f"product(*{shape}, **{options})") from error
    assert refused <= 3 * right
    print(f"{right} products of chance right, {refused} refused")

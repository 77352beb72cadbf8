"""Ablation on this GPU: what each knob of the planner's picks is worth, in percent of time.

python bench/knobs.py --dtype float16
"""

import fastgemm
from machine import ceilings, gpu, make_parser, provenance, require_gpu, write
from timing import Operands, microseconds, worst_error

SHAPES = [
    (4096, 4096, 4096),
    (512, 6144, 4096),
    (16, 6144, 4096),
    (256, 256, 65536),
    (3000, 5000, 2468),
]
STAGES = {"2 stages": {"num_stages": 2}, "1 stage": {"num_stages": 1}}
# One change to the pick, everything else as it is (None: as fits) ...
OFF = {
    "sm90": {
        "no multicast": {"multicast": False},
        "no clusters": {"cluster_m": 1, "cluster_n": 1, "multicast": False},
        "no TMA stores": {"tma_stores": False, "num_stages": None},
        "stores from registers": {"tma_stores": False, "staged_stores": False},
        "no dependent launch": {"dependent_launch": False},
        "one tile a CTA": {"persistent": False, "ping_pong": False, "num_stages": None},
        "no raster groups": {"raster_group": 0},
        "64-byte swizzle": {"swizzle_bytes": 64},
        "32-byte swizzle": {"swizzle_bytes": 32},
        "no swizzle": {"swizzle": False, "swizzle_bytes": None},
        **STAGES,
    },
    "sm80": {
        "no swizzle": {"swizzle": False},
        "stores from registers": {"staged_stores": False},
        "no raster groups": {"raster_group": 0},
        **STAGES,
    },
}
# ... or the best that the planner finds without.
WITHOUT = {
    "no swapped operands": {"swap_ab": False},
    "no split K": {"split_k": 1},
    "no ping-pong": {"ping_pong": False},
    "no repacking": {"repack_a": False, "repack_b": False},
    "no shifted rows": {"shift_a": False, "shift_b": False},
}


def variants(family, base):
    """The planner's pick with every field fixed, and the same with one knob turned off."""
    configs = {"as planned": base}
    for name, off in {**OFF[family], **WITHOUT}.items():
        if all(getattr(base, f) == value for f, value in off.items() if value is not None):
            continue
        without = name in WITHOUT
        configs[name] = (
            fastgemm.GemmConfig(family=family, **off) if without else base.replace(**off)
        )
    return configs


def with_config(config):
    def call(a, b, d):
        fastgemm.gemm(a, b, out=d, config=config)

    return call


def ablate(family, shape, options, ceiling):
    plan = fastgemm.plan(
        *shape,
        dtype=options.dtype,
        layout=options.layout,
        device=0,
        config=fastgemm.GemmConfig(family=family),
    )
    operands = Operands(*shape, options.dtype, options.layout)
    print(f"{' x '.join(map(str, shape))}: {plan.config}")
    calls = {}
    for name, config in variants(family, plan.config).items():
        try:
            error = worst_error(with_config(config), operands)
        except ValueError as refusal:
            print(f"  {name:22} {str(refusal).rpartition('] ')[2]}")
            continue
        if not error <= 1:
            raise SystemExit(f"{name} is wrong on {shape}: {error:.2f} times the bound")
        calls[name] = with_config(config)
    times = microseconds(calls, operands, operands.floor_us(ceiling), options.rounds)
    for name, us in times.items():
        print(
            f"  {name:22} {us:9.2f} us  {100 * (us / times['as planned'] - 1):+7.1f} %", flush=True
        )
    return {"family": family, "shape": shape, "config": str(plan.config), "us": times}


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    require_gpu()
    families = ("sm90", "sm80") if fastgemm.devices()[0].arch.tma_wgmma else ("sm80",)
    results = {**provenance("knobs", options), **gpu()}
    results["rows"] = [
        ablate(family, shape, options, ceilings()) for family in families for shape in SHAPES
    ]
    write(results, options.out)


if __name__ == "__main__":
    main()

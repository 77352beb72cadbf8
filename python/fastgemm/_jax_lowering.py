"""What a product becomes in a JAX program: parts on devices, and a custom call on each GPU.

Every dimension may be split over a mesh. Parts of a sum are added in float32, then rounded.
"""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax._src import dispatch
from jax.experimental.custom_partitioning import custom_partitioning
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec
from jaxlib.xla_client import CustomCallTargetTraits

from . import _core
from ._jax_primitive import finish, local_p, product_p, reference


def _without_mesh():
    """A device's part is an array of its own, whatever mesh of explicit axes the program is in."""
    return jax.sharding.use_abstract_mesh(AbstractMesh((), ()))


def _factors(shapes, transpose_a, transpose_b, summed):
    """The names of the dimensions of A, B, C and D, and those of them that are summed up."""
    batch = [f"b{i}" for i in range(len(shapes[0]) - 2)]
    names = [
        [*batch, *(("k", "m") if transpose_a else ("m", "k"))],
        [*batch, *(("n", "k") if transpose_b else ("k", "n"))],
        *([*batch, "m", "n"] for _ in shapes[2:]),
    ]
    extents = {}
    for dims, shape in zip(names, shapes, strict=True):
        for name, extent in zip(dims, shape, strict=True):
            extents[name] = max(extents.get(name, 1), extent)
    unit = iter(range(64))
    for dims, shape in zip(names, shapes, strict=True):
        for i, extent in enumerate(shape):
            if extent != extents[dims[i]]:
                dims[i] = f"one{next(unit)}"
    d = [f"one{next(unit)}" if summed else name for name in batch] + ["m", "n"]
    summed_up = {"k", *(batch if summed else ())}
    appearing = dict.fromkeys(name for dims in names for name in dims)
    return names, d, [name for name in appearing if name in summed_up]


def _sharding_rule(static, mesh, values, results):
    shapes = [tuple(value.shape) for value in values]
    names, d, reduced = _factors(
        shapes, static["transpose_a"], static["transpose_b"], static["summed"]
    )
    rule = ", ".join(" ".join(dims) for dims in names) + " -> " + " ".join(d)
    return rule, {"reduction_factors": tuple(reduced)}


def _axes(entry):
    return () if entry is None else entry if isinstance(entry, tuple) else (entry,)


def _partition(static, mesh, arguments, result):
    shapes = [x.shape for x in arguments]
    names, d, reduced = _factors(
        shapes, static["transpose_a"], static["transpose_b"], static["summed"]
    )
    # Mesh axes by dimension: first come, first served; the result's own come first.
    axes, used = {}, set()
    for dims, array in [(d, result), *zip(names, arguments, strict=True)]:
        spec = (*array.sharding.spec, *(None,) * len(dims))
        for name, entry in zip(dims, spec, strict=False):
            fresh = [axis for axis in _axes(entry) if axis not in used]
            if name not in axes and not name.startswith("one"):
                axes[name] = tuple(fresh)
                used.update(fresh)

    def sharding(dims):
        return NamedSharding(mesh, PartitionSpec(*(axes.get(name) or None for name in dims)))

    added = tuple(axis for name in reduced for axis in axes.get(name, ()))
    local = {**static, "out_sharding": None}

    def compute(a, b, *c):
        with _without_mesh():
            if not added:
                return local_p.bind(a, b, *c, **local)
            bare = {"bias": False, "activation": None, "out_dtype": jnp.dtype("float32")}
            sums = jax.lax.psum(local_p.bind(a, b, **{**local, **bare}), added)
            return finish(sums, *c, **static)

    return mesh, compute, sharding(d), tuple(sharding(dims) for dims in names)


@functools.cache
def _partitioned(static):
    static = dict(static)
    product = custom_partitioning(lambda *operands: local_p.bind(*operands, **static))
    product.def_partition(
        functools.partial(_partition, static),
        sharding_rule=functools.partial(_sharding_rule, static),
    )
    return product


def _lower(*operands, **static):
    return _partitioned(tuple(static.items()))(*operands)


mlir.register_lowering(product_p, mlir.lower_fun(_lower, multiple_results=False))
# As custom_partitioning's own primitive, which appears in its place: what it splits over must be
# known when it is lowered.
dispatch.prim_requires_devices_during_lowering.add(product_p)


# On one device.


def _on_gpu(
    ctx,
    *operands,
    alpha,
    beta,
    transpose_a,
    transpose_b,
    out_dtype,
    bias,
    activation,
    config,
    **_,
):
    shapes = [list(aval.shape) for aval in ctx.avals_in]
    number = 0 if config is None else _core._remember_config(config)
    capturable = _core._compile_product(
        shapes[0],
        shapes[1],
        shapes[2] if len(shapes) > 2 else None,
        transpose_a,
        transpose_b,
        str(ctx.avals_in[0].dtype),
        str(out_dtype),
        str(ctx.avals_in[-1].dtype),
        bias,
        activation or "",
        number,
        _local_gpus(),
    )
    return jax.ffi.ffi_lowering(_register_target(capturable))(
        ctx,
        *operands,
        alpha=np.float32(alpha),
        beta=np.float32(beta),
        transpose_a=np.int32(transpose_a),
        transpose_b=np.int32(transpose_b),
        bias=np.int32(bias),
        activation=activation or "",
        config=np.int64(number),
    )


def _local_gpus():
    """CUDA's numbers of the GPUs that this process works on; none where JAX has no GPU."""
    try:
        return [device.local_hardware_id for device in jax.local_devices(backend="cuda")]
    except RuntimeError:
        return []


def _summed_as_k(a, b, *, transpose_a, transpose_b, **static):
    """A sum over the batch is a longer k, where batch and k lie behind each other."""
    a = a if transpose_a else a.mT
    b = b.mT if transpose_b else b
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (jnp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    ones = (1,) * len(batch)
    a, b = (x.reshape(*ones, -1, x.shape[-1]) for x in (a, b))
    return local_p.bind(a, b, transpose_a=True, transpose_b=False, **{**static, "summed": False})


def _lower_as(function, ctx, operands, static):
    """Lowers a function in the place of the primitive, in the mesh that its operands name."""
    plain = all(aval.sharding.mesh.empty for aval in ctx.avals_in)
    rule = mlir.lower_fun(functools.partial(function, **static), multiple_results=False)
    with _without_mesh() if plain else contextlib.nullcontext():
        return rule(ctx, *operands)


def _lower_local(ctx, *operands, **static):
    return _lower_as(reference, ctx, operands, static)


def _lower_local_on_gpu(ctx, *operands, **static):
    if static["summed"]:
        return _lower_as(_summed_as_k, ctx, operands, static)
    return _on_gpu(ctx, *operands, **static)


@functools.cache
def _register_target(capturable):
    name = "fastgemm_product" + ("" if capturable else "_with_workspace")
    traits = CustomCallTargetTraits(int(capturable))  # 1: may be captured
    handler = _core._xla_handler(capturable)
    jax.ffi.register_ffi_target(name, handler, platform="CUDA", traits=traits)
    return name


mlir.register_lowering(local_p, _lower_local)
mlir.register_lowering(local_p, _lower_local_on_gpu, platform="cuda")

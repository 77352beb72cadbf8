"""A block of a Llama-like model with fastgemm in place of the products: decoding, captured.

    python bench/llama_block.py --out results/llama_block.json

One token for each of --batch sequences, through --layers blocks (RMSNorm, attention projections,
attention over a cache, SwiGLU) of the size of Llama 3 8B. PyTorch: CUDA graphs of the model as it
is and patched, taking turns; JAX: the same function jitted with jnp.matmul and fastgemm.jax.
"""

import os
import time
from dataclasses import dataclass
from statistics import median

from machine import gpu, make_parser, provenance, require_gpu, torch, write

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


@dataclass
class Size:
    hidden: int = 4096
    heads: int = 32
    kv_heads: int = 8
    inner: int = 14336
    context: int = 512  # tokens in the cache

    @property
    def head(self):
        return self.hidden // self.heads

    @property
    def kv(self):
        return self.kv_heads * self.head

    def weights(self):
        """Names and (out, in) shapes of a block's products."""
        return {
            "query": (self.hidden, self.hidden),
            "key": (self.kv, self.hidden),
            "value": (self.kv, self.hidden),
            "out": (self.hidden, self.hidden),
            "gate": (self.inner, self.hidden),
            "up": (self.inner, self.hidden),
            "down": (self.hidden, self.inner),
        }


if torch is not None:

    class TorchBlock(torch.nn.Module):
        """x of (batch, tokens, hidden); attends to a fixed cache and to the tokens themselves."""

        def __init__(self, size, batch=1, **kind):
            super().__init__()
            self.size = size
            for name, (rows, columns) in size.weights().items():
                layer = torch.nn.Linear(columns, rows, bias=False, **kind)
                torch.nn.init.normal_(layer.weight, std=columns**-0.5)
                setattr(self, name, layer)
            self.norms = torch.nn.ModuleList(
                torch.nn.RMSNorm(size.hidden, **kind) for _ in range(2)
            )
            shape = batch, size.kv_heads, size.context, size.head
            for name in ("keys", "values"):
                self.register_buffer(name, torch.randn(shape, **kind))

        def heads(self, x, count):
            return x.unflatten(-1, (count, self.size.head)).transpose(1, 2)

        def forward(self, x):
            y = self.norms[0](x)
            query = self.heads(self.query(y), self.size.heads)
            key = torch.cat([self.keys, self.heads(self.key(y), self.size.kv_heads)], dim=2)
            value = torch.cat([self.values, self.heads(self.value(y), self.size.kv_heads)], dim=2)
            attended = torch.nn.functional.scaled_dot_product_attention(
                query, key, value, enable_gqa=True
            )
            x = x + self.out(attended.transpose(1, 2).flatten(2))
            y = self.norms[1](x)
            return x + self.down(torch.nn.functional.silu(self.gate(y)) * self.up(y))


def jax_weights(size, dtype, seed=0, batch=1):
    import jax

    keys = iter(jax.random.split(jax.random.key(seed), 16))
    weights = {
        name: (jax.random.normal(next(keys), shape) * shape[1] ** -0.5).astype(dtype)
        for name, shape in size.weights().items()
    }
    cache = batch, size.context, size.kv_heads, size.head
    for name in ("keys", "values"):
        weights[name] = jax.random.normal(next(keys), cache).astype(dtype)
    return weights


def jax_block(linear, size, weights, x):
    """The same in JAX; linear(x, weight) with weight (out, in)."""
    import jax
    import jax.numpy as jnp

    def norm(x):
        wide = x.astype(jnp.float32)
        scale = jax.lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-6)
        return (wide * scale).astype(x.dtype)

    def heads(x, count):
        return x.reshape(*x.shape[:-1], count, size.head)

    y = norm(x)
    query = heads(linear(y, weights["query"]), size.heads)
    new_keys = heads(linear(y, weights["key"]), size.kv_heads)
    new_values = heads(linear(y, weights["value"]), size.kv_heads)
    key = jnp.concatenate([weights["keys"], new_keys], axis=1)
    value = jnp.concatenate([weights["values"], new_values], axis=1)
    attended = jax.nn.dot_product_attention(query, key, value)
    x = x + linear(attended.reshape(x.shape), weights["out"])
    y = norm(x)
    inner = jax.nn.silu(linear(y, weights["gate"])) * linear(y, weights["up"])
    return x + linear(inner, weights["down"])


def turns(calls, rounds):
    """Median seconds of each call, which ends when its result is there."""
    samples = {name: [] for name in calls}
    for round_number in range(rounds + 2):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            if round_number > 1:
                samples[name].append(time.perf_counter() - begin)
    return {name: median(values) for name, values in samples.items()}


def torch_graph(model, x):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(x)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = model(x)
    return graph, result


def measure_torch(size, batch, options):
    import fastgemm.torch

    kind = {"device": "cuda", "dtype": getattr(torch, options.dtype)}
    torch.manual_seed(0)
    blocks = [TorchBlock(size, batch, **kind) for _ in range(options.layers)]
    model = torch.nn.Sequential(*blocks).requires_grad_(False)
    x = torch.randn(batch, 1, size.hidden, **kind)
    theirs, expected = torch_graph(model, x)
    with fastgemm.torch.patch(model):
        mine, result = torch_graph(model, x)

    def replay(graph):
        for _ in range(8):
            graph.replay()
        torch.cuda.synchronize()

    seconds = turns(
        {"torch": lambda: replay(theirs), "fastgemm": lambda: replay(mine)}, options.rounds
    )
    error = (result.float() - expected.float()).abs().max() / expected.float().abs().max()
    return tokens_per_second({k: s / 8 for k, s in seconds.items()}, batch, error.item())


def measure_jax(size, batch, options):
    import functools

    import fastgemm.jax
    import jax
    import jax.numpy as jnp

    layers = [jax_weights(size, options.dtype, i, batch) for i in range(options.layers)]
    x = jax.random.normal(jax.random.key(99), (batch, 1, size.hidden)).astype(options.dtype)

    def program(linear):
        @jax.jit
        def run(layers, x):
            for weights in layers:
                x = jax_block(linear, size, weights, x)
            return x

        return functools.partial(run, layers, x)

    programs = {
        "XLA": program(lambda x, weight: jnp.matmul(x, weight.T)),
        "fastgemm": program(fastgemm.jax.linear),
    }
    expected, result = (run().astype(jnp.float32) for run in programs.values())
    error = float(jnp.abs(result - expected).max() / jnp.abs(expected).max())
    calls = {name: lambda run=run: run().block_until_ready() for name, run in programs.items()}
    return tokens_per_second(turns(calls, options.rounds), batch, error)


def tokens_per_second(seconds, batch, error):
    row = {"tokens_per_second": {k: batch / s for k, s in seconds.items()}, "error": error}
    if not error < 0.05:
        raise SystemExit(f"the outputs differ by {error:.3f} of the largest")
    return row


def main():
    parser = make_parser(__doc__)
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", default="1,16,64", help="comma-separated")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    require_gpu()
    results = {**provenance("llama_block", options), **gpu(), "layers": options.layers}
    results["rows"], results["not_run"] = [], {}
    for framework, measure in {"torch": measure_torch, "jax": measure_jax}.items():
        for batch in map(int, options.batch.split(",")):
            try:
                row = measure(Size(), batch, options)
            except (ImportError, RuntimeError) as error:
                results["not_run"][framework] = f"{type(error).__name__}: {error}"
                continue
            results["rows"].append({"framework": framework, "batch": batch, **row})
            rates = row["tokens_per_second"]
            theirs, mine = rates.values()
            cells = [f"{name} {rate:.0f} tokens/s" for name, rate in rates.items()]
            print(f"{framework:6} batch {batch:4}", *cells, f"ratio {mine / theirs:.3f}")
            torch.cuda.empty_cache()
    for name, reason in results["not_run"].items():
        print(f"{name}: not run ({reason})")
    write(results, options.out)


if __name__ == "__main__":
    main()

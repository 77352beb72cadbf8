// The product as a custom call of XLA programs, which is how jax.jit calls it.
#pragma once

#include <nanobind/nanobind.h>

namespace fastgemm::python {

// Adds what fastgemm/jax.py needs:
//
// _xla_handlers(capturable): the handlers for XLA's stages "initialize" (loads what is missing) and
//   "execute", as capsules in a dict. Operands are a, b and at most one C or bias, all row-major.
//   Attributes: float32 alpha and beta, int32 transpose_a and transpose_b (of the last two
//   dimensions), int32 bias (the third operand is one), string activation, int64 config.
//   `capturable`: XLA may capture the launches into a CUDA graph.
// _remember_config(config): the number that stands for a GemmConfig in programs, the same in every
//   process.
// _compile_product(a, b, c, transpose_a, transpose_b, in, out, c_type, bias, activation, config,
//   load_on): plans what a handler will be called with, given as shapes and dtypes, compiles its
//   kernels for each kind of GPU that is there, and loads them on the devices of `load_on`. Whether
//   its launches can be captured into a part of a graph: they can unless they allocate a workspace,
//   or there is no GPU to plan for.
void bind_xla(nanobind::module_& m);

}  // namespace fastgemm::python

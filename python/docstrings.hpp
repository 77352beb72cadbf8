// What help() shows of the package. The first line of gemm's is its signature.
#pragma once

namespace fastgemm::python {

constexpr const char* gemm_docstring =
    R"(gemm($module, a, b, *, c=None, alpha=1.0, beta=None, bias=None, activation=None, scale_a=None, scale_b=None, residual=None, keep=None, amax=None, out_scale=None, gated=None, epilogue=None, out=None, out_dtype=None, config=None, stream=None)
--

Matrix product alpha * a @ b + beta * c on Tensor Cores: float32 sums, one rounding. In the same kernel:

  activation(alpha * a @ b * scale_a * scale_b + bias + residual + beta * c) / out_scale

  or an epilogue of one's own.

Shapes are those of numpy.matmul: a is (..., m, k) or (k,), b is (..., k, n) or (k,), leading dimensions
broadcast, and a vector's dimension is missing in the result. Scalars (0-d) are refused. Any strides are
read in place, also 0 and negative ones. k = 0 gives beta * c.

Args:
  a, b: arrays of NumPy (bfloat16 through ml_dtypes), CuPy, JAX, PyTorch or anything that speaks DLPack, on
    one GPU or all on the host; float16 or bfloat16, both the same. Host arrays, pinned ones too, are copied
    to GPU 0 and back; CUDA managed memory counts as the GPU's. With no GPU, host arrays are computed by the
    emulator, see emulate(), after one RuntimeWarning.
  c: array added to the product, of the result's dtype; broadcast to its shape.
  alpha, beta: real numbers. beta=None is 1 with c and 0 without.
  bias: a value for each column, (n,) or (..., 1, n), or for each row, (..., m, 1). Like the arrays below, of
    float16, bfloat16 or float32 (c too, where anything but c is fused).
  activation: "relu", "gelu" (with erf), "gelu_tanh", "silu", "sigmoid" or "tanh".
  scale_a: a number, one element, or a factor for each row, (m,) or (..., m, 1).
  scale_b: a number, one element, or a factor for each column, (n,) or (..., 1, n).
  residual: array added before the activation; broadcast to the result's shape. May be out.
  keep: array of the result's shape, of float16, bfloat16 or float32, that gets the value before the activation.
  amax: one float32, which is raised to the largest magnitude before out_scale; set it to 0 before.
  out_scale: what one step of a quantised result is worth: a number, one element, or a value for each column,
    (n,) or (..., 1, n), or for each row, (..., m, 1).
  gated: the result has one column for two of the product: activation(gate) * up, both with their scales and
    bias. "interleaved": column j is made of columns 2 j and 2 j + 1; "blocked": of j and n / 2 + j.
  epilogue: an Epilogue, instead of all of these.
  out: where the result goes, of exactly its shape; read nowhere unless it is also c. It may have any
    strides, must be writable and must not overlap a or b. Not a JAX array: those are immutable.
    Memory that is exported without DLPack's read-only flag (before DLPack 1.0) counts as writable.
  out_dtype: the dtype of a (the default), "float32", "int8", "float8_e4m3fn" or "float8_e5m2", by name or as a
    framework's dtype. Those of 8 bits are rounded to nearest even and saturate, also at infinities; NaN stays
    NaN, and is 0 as int8.
  config: a GemmConfig; fields that are None stay the planner's.
  stream: CUDA stream to work on: a handle (int), or an object with .cuda_stream, .ptr or __cuda_stream__.
    The caller then orders the work of other streams. None is the current stream of a's framework.

Returns:
  out, or a new array in the framework of a. With PyTorch and CuPy, the work is enqueued on their current
  stream and the call does not wait. Where the operands are of several frameworks, of JAX, or of one that
  only speaks DLPack, the call orders itself after their work and returns when the product is there.

While grad mode is on, tensors that require grad take the operator of fastgemm.torch, which autograd records;
so do FakeTensors. Values that JAX traces take that of fastgemm.jax. Operators have neither out nor stream.

Raises:
  ValueError: shapes, strides, devices or a config that cannot be computed, read-only or overlapping out.
  TypeError: unsupported or mixed dtypes, objects that are not arrays.
  CompileError: NVRTC is missing or refused the kernel.
  DeviceError: no usable GPU or driver, or a driver call failed.
  ColdCallError: a kernel is missing while a CUDA graph is captured, or in strict mode.
  Nothing is computed then.)";

constexpr const char* emulate_docstring =
    R"(emulate($module, a, b, *, c=None, alpha=1.0, beta=None, bias=None, activation=None, scale_a=None, scale_b=None, residual=None, keep=None, amax=None, out_scale=None, gated=None, epilogue=None, out=None, out_dtype=None, config=None, arch=None, seed=0, workers=None)
--

gemm() with the very kernel of a GPU, run on the CPU: every access is checked, every instruction counted.

Args:
  a, b and what follows up to config: as in gemm(); all arrays on the host.
  arch: the GPU that is emulated, as plan() takes it: "sm_90", "H100", a HardwareSpec; None is "sm_80".
  seed: of the order in which threads run. No result may depend on it.
  workers: threads that run CTAs; None is one for each core.

Returns:
  (result, EmulatorReport). print(report) shows bank conflicts, bytes and instructions.

Raises, besides what gemm() raises:
  EmulatorError: the kernel does what it must not: a race, an access out of bounds, a deadlock ...; out may
    have been written in part.
  CompileError: the kernel was not compiled ahead, and there is no C++ compiler, or it refused the kernel.)";

constexpr const char* instruction_counts_docstring =
    R"(What the emulated machine executed of one instruction, for whole warps (wgmma: warpgroups).

shared_bytes, global_bytes: moved. wavefronts: passes over the 32 banks of shared memory; bank_conflicts: those
beyond what the bytes need (of wgmma and the TMA by a model: README, the emulator). sectors: 32-byte pieces of global memory.)";

constexpr const char* emulator_report_docstring =
    R"(What an emulated product did; print it for a table, report["ldmatrix"] gives one instruction's counts.

kernels: names, as launched. config, arch, seed. ctas, threads: the grid, and a CTA's threads. seconds: on the
CPU, without compiling. instructions: InstructionCounts of those that were executed.)";

constexpr const char* unrecorded_docstring =
    R"(_gemm($module, a, b, *, c=None, alpha=1.0, beta=None, bias=None, activation=None, scale_a=None, scale_b=None, residual=None, keep=None, amax=None, out_scale=None, gated=None, epilogue=None, out=None, out_dtype=None, config=None, stream=None)
--

gemm() for who has asked autograd already: the kernel of the PyTorch operator.)";

constexpr const char* unrecorded_linear_docstring =
    R"(_linear($module, x, weight, bias=None, *, activation=None, out=None, out_dtype=None, config=None, stream=None)
--

linear() for who has asked autograd already.)";

constexpr const char* linear_docstring =
    R"(linear($module, x, weight, bias=None, *, activation=None, out=None, out_dtype=None, config=None, stream=None)
--

A linear layer: x @ weight.T + bias, with the weight as models keep it, (out_features, in_features).

Args:
  x: (..., in_features) or (in_features,), float16 or bfloat16.
  weight: (out_features, in_features), of x's dtype; any strides.
  bias: (out_features,), of float16, bfloat16 or float32.
  activation: applied to the sum, by name; see gemm().
  out, out_dtype, config, stream: as for gemm().

Returns and raises what gemm() does; the result is (..., out_features).)";

constexpr const char* prepare_docstring =
    R"(prepare($module, a, b, *, c=None, alpha=1.0, beta=None, bias=None, activation=None, scale_a=None, scale_b=None, residual=None, keep=None, amax=None, out_scale=None, gated=None, epilogue=None, out=None, out_dtype=None, config=None, stream=None)
--

Reads the arguments of gemm(), plans, compiles and loads; returns a PreparedGemm, whose call only launches.

Args: those of gemm(), on a GPU, of one framework unless stream is given, and not of JAX. Without out, one result
is allocated here. Tensors that require grad are refused while grad mode is on. Raises what gemm() does.)";

constexpr const char* prepared_class_docstring =
    R"(A product that is ready to be launched: `prepared()` computes it anew from what the arrays hold then.

Each call writes and returns `out`, on the stream given to prepare(), else on the current stream of a's framework.
The arrays and the kernel are kept as long as the object lives. A call may be captured into a CUDA graph.)";

constexpr const char* rebind_docstring =
    R"(rebind($self, a=None, b=None, *, c=None, bias=None, scale_a=None, scale_b=None, residual=None, keep=None, amax=None, out_scale=None, epilogue=None, out=None)
--

Takes other arrays of the same shapes, strides, dtypes and device from now on; those not given stay. Returns itself.

Raises ValueError where an array differs, is aligned otherwise, or out overlaps an operand.)";

constexpr const char* describe_docstring =
    R"(_describe_call($module, a, b, *, c=None, alpha=1.0, beta=None, bias=None, activation=None, scale_a=None, scale_b=None, residual=None, keep=None, amax=None, out_scale=None, gated=None, epilogue=None, out=None, out_dtype=None, config=None, stream=None)
--

What gemm() would do with these arguments: its problems, device and stream. Computes nothing.)";

constexpr const char* epilogue_docstring =
    R"(What becomes of the product before it is stored, in the same kernel: an expression and its operands.

  Epilogue("gelu(acc * scale[m] + bias[n]) + residual[m, n]", scale=s, bias=b, residual=r)

expression: acc is alpha * a @ b in float32. x[m], x[n] and x[m, n] are the elements of an array for the row, the
  column, or both; x alone is a number, or the only element of an array. + - * / and parentheses; where(condition,
  x, y) with < <= > >= == != and or not; abs exp log sqrt min max relu gelu gelu_tanh silu sigmoid tanh.
  keep(x) is x and leaves it in the array keep; amax(x) is x and raises the float32 amax to the largest |x|.
values: by name. Real numbers are arguments of the kernel: another one compiles nothing. Arrays are float16,
  bfloat16 or float32, on the device of the product: x[m] of shape (m,) or (..., m, 1), x[n] of shape (n,) or
  (..., 1, n), x[m, n] broadcast to the result. They are read at each call, and kept until then.
gated: "interleaved" or "blocked" where the expression has gate and up in place of acc: the two columns of the
  product that one column of the result is made of (see gemm()). x[gate] and x[up] are then elements of an array
  of n, x[n] those of one of n / 2: Epilogue("silu(gate * s[gate]) * up * s[up]", gated="blocked", s=s).
device_code: CUDA C++ in front of the kernel, with functions that the expression may call:
  "FASTGEMM_DEVICE float leaky(float x, float slope) { return x > 0 ? x : slope * x; }".

Raises ValueError that points at the column, or names what is missing or not used.)";

constexpr const char* config_docstring =
    R"(What of a kernel is fixed; every field that is None stays the planner's. Immutable.

family: "sm90", "sm80", "sm75", "sm70" or "gemv", the kernel family.
strategy: name of a tiling strategy, see strategies().
block_m, block_n, block_k: block tile, in elements: what a CTA computes, and its step along K.
warp_m, warp_n: warp tile, in elements: the part of block_m x block_n of one warp (sm90: of one warpgroup).
split_k: parts of K that are summed up independently and added in a fixed order; 1 is off.
num_stages: depth of the shared-memory ring along K; 1 is off.
swizzle: permute 16-byte chunks of shared memory against bank conflicts.
swizzle_bytes: width of a swizzled row of A and B in shared memory: 128, 64 or 32; 16 is off (family sm90).
raster_group: rows of tiles that CTAs walk together for L2; 0 is off.
swap_ab: compute the transposed product, so that rows and columns change sides (families sm90 and gemv).
staged_stores: the result goes through shared memory; False writes it straight from registers.
repack_a, repack_b: the operand is first copied into a workspace, in aligned rows of whole 128-byte lines.
shift_a, shift_b: rows that begin anywhere are read in the aligned 16 bytes that hold them (families sm80, sm90).
cluster_m, cluster_n: CTAs of a cluster, above and beside each other (family sm90); 1 is off.
cluster_k: CTAs of a cluster that share K of one block tile and add up inside the cluster (family sm90); 1 is off.
multicast: a cluster fetches the operands that its CTAs share once (family sm90).
tma_stores: the result leaves by the TMA; False uses ordinary stores (family sm90).
dependent_launch: the kernel starts while the one before it in the stream still runs (sm90; gemv from compute
  capability 9.0 on).
prefetch: with dependent_launch, the first k-tiles of A (swap_ab: of B) go to L2 meanwhile (family sm90).
ping_pong: two warpgroups take block tiles in turns, one multiplies while the other stores (family sm90).
persistent: a CTA takes block tiles until none is left; False: one, whose stores it stages in the ring (family sm90).

Family gemv has no swizzle, raster groups, clusters, staged or TMA stores, and no repacking. There block_m is the
rows that are computed at once (1 to 8; where k is contiguous in the longer operand, multiples of 8 up to 64 are
for Tensor Cores), block_n and warp_n the columns of a CTA and of a warp, block_k the part of K that a CTA reads in
one step, and num_stages the groups of eight elements of K that a lane reads at once.)";

constexpr const char* hardware_spec_docstring =
    R"(One GPU: a row of the parameter table, or a live device that told its own numbers.

arch: ArchSpec. name: of the card. sms: streaming multiprocessors. clock_ghz: boost clock. l2_bytes: size of L2.
dram_gbps: 10^9 bytes per second. device: CUDA ordinal of a live device, None for a row of the table.)";

constexpr const char* hardware_docstring =
    R"(The parameter table's row for an architecture or a card: "sm_90", "90", "9.0", "H100", "RTX 4090".

Raises ValueError with what is known.)";

constexpr const char* plan_class_docstring =
    R"(Which kernel a product gets, and why: str(plan) is one line, plan.explain() the whole decision.

m, n, k, batch; dtype, out_dtype; layout: "nt" and so on; arch: "sm_90"; hardware: HardwareSpec.
strategy: name of the tiling strategy. config: GemmConfig with every field fixed. threads: per CTA.
shared_bytes: dynamic shared memory per CTA. ctas: size of the grid. ctas_per_sm: CTAs resident at once.
cost: predicted microseconds by cause, and waves. considered: Candidates, best first, refused ones last.)";

constexpr const char* plan_docstring =
    R"(Plans the product of an (m, k) and a (k, n) matrix, packed in memory. Needs no GPU.

dtype: of both operands. out_dtype: "float32" or dtype (the default).
layout: two letters, for A then B: "n" is stored as written (m x k, k x n, row-major), "t" transposed; "nt" is
  a linear layer with its (n, k) weight.
batch: number of products. beta: not 0 where a matrix C is added.
arch: "sm_80", a card's name as hardware() takes it, or a HardwareSpec. device: CUDA ordinal.
  Neither: the first live GPU and, where there is none, sm_90.
config: GemmConfig with what is to be fixed.
epilogue: an expression or an Epilogue; its arrays count as packed, aligned, and of dtype.

Raises ValueError (with need and limit) and TypeError for what cannot be planned.)";

constexpr const char* kernel_docstring =
    R"(A compiled kernel, and what the compiler made of it.

source: the generated CUDA C++, 30 to 50 lines. cubin: machine code (bytes). ptx: compiled anew, to be read.
target: "sm_90a". registers: per thread. spill_bytes: local memory per thread, 0 is none. shared_bytes: per CTA.
compile_ms: milliseconds in NVRTC, 0 when from_disk.)";

constexpr const char* compile_docstring =
    R"(Compiles the kernel of a plan for its target, or takes it from the disk cache. Needs NVRTC, but no GPU.

Raises CompileError.)";

constexpr const char* strict_docstring =
    R"(Whether a call that would have to compile raises ColdCallError instead: for serving, after the warm-up.

prepare(), warmup() and compile() compile nevertheless. Off unless FASTGEMM_STRICT=1.)";

constexpr const char* cache_info_docstring =
    R"(loaded of capacity: kernels in memory. hits, misses, evictions: look-ups there. compiles, disk_hits: where
misses were served from. disk_path: "" where no folder is usable. disk_files, disk_bytes: what it holds.)";

}  // namespace fastgemm::python

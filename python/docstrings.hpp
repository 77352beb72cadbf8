// What help() shows of the package. The first line of gemm's is its signature.
#pragma once

namespace fastgemm::python {

constexpr const char* gemm_docstring =
    R"(gemm($module, a, b, *, c=None, alpha=1.0, beta=None, out=None, out_dtype=None, config=None, stream=None)
--

Matrix product alpha * a @ b + beta * c on Tensor Cores: float32 sums, one rounding.

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
  out: where the result goes, of exactly its shape; read nowhere unless it is also c. It may have any
    strides, must be writable and must not overlap a or b. Not a JAX array: those are immutable.
    Memory that is exported without DLPack's read-only flag (before DLPack 1.0) counts as writable.
  out_dtype: "float32", or the dtype of a (the default), by name or as a framework's dtype.
  config: a GemmConfig; fields that are None stay the planner's.
  stream: CUDA stream to work on: a handle (int), or an object with .cuda_stream, .ptr or __cuda_stream__.
    The caller then orders the work of other streams. None is the current stream of a's framework.

Returns:
  out, or a new array in the framework of a. With PyTorch and CuPy, the work is enqueued on their current
  stream and the call does not wait. Where the operands are of several frameworks, of JAX, or of one that
  only speaks DLPack, the call orders itself after their work and returns when the product is there.

Tensors that require grad are refused while grad mode is on: the product is not recorded by autograd.

Raises:
  ValueError: shapes, strides, devices or a config that cannot be computed, read-only or overlapping out.
  TypeError: unsupported or mixed dtypes, objects that are not arrays.
  CompileError: NVRTC is missing or refused the kernel.
  DeviceError: no usable GPU or driver, or a driver call failed.
  Nothing is computed then.)";

constexpr const char* emulate_docstring =
    R"(emulate($module, a, b, *, c=None, alpha=1.0, beta=None, out=None, out_dtype=None, config=None, arch=None, seed=0, workers=None)
--

gemm() with the very kernel of a GPU, run on the CPU: every access is checked, every instruction counted.

Args:
  a, b, c, alpha, beta, out, out_dtype, config: as in gemm(); all arrays on the host.
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
beyond what the bytes need. sectors: 32-byte pieces of global memory.)";

constexpr const char* emulator_report_docstring =
    R"(What an emulated product did; print it for a table, report["ldmatrix"] gives one instruction's counts.

kernels: names, as launched. config, arch, seed. ctas, threads: the grid, and a CTA's threads. seconds: on the
CPU, without compiling. instructions: InstructionCounts of those that were executed.)";

constexpr const char* describe_docstring =
    R"(_describe_call($module, a, b, *, c=None, alpha=1.0, beta=None, out=None, out_dtype=None, config=None, stream=None)
--

What gemm() would do with these arguments: its problems, device and stream. Computes nothing.)";

constexpr const char* config_docstring =
    R"(What of a kernel is fixed; every field that is None stays the planner's. Immutable.

family: "sm90", "sm80", "sm75", "sm70" or "gemv", the kernel family.
strategy: name of a tiling strategy, see strategies().
block_m, block_n, block_k: block tile, in elements: what a CTA computes, and its step along K.
warp_m, warp_n: warp tile, in elements: the part of block_m x block_n of one warp (sm90: of one warpgroup).
split_k: parts of K that are summed up independently and added in a fixed order; 1 is off.
num_stages: depth of the shared-memory ring along K; 1 is off.
swizzle: permute 16-byte chunks of shared memory against bank conflicts.
raster_group: rows of tiles that CTAs walk together for L2; 0 is off.
swap_ab: compute the transposed product, so that rows and columns change sides (families sm90 and gemv).
staged_stores: the result goes through shared memory; False writes it straight from registers.
repack_a, repack_b: the operand is first copied into a workspace, in aligned rows of whole 128-byte lines.
cluster_m, cluster_n: CTAs of a cluster, above and beside each other (family sm90); 1 is off.
cluster_k: CTAs of a cluster that share K of one block tile and add up inside the cluster (family sm90); 1 is off.
multicast: a cluster fetches the operands that its CTAs share once (family sm90).
tma_stores: the result leaves by the TMA; False uses ordinary stores (family sm90).
dependent_launch: the kernel starts while the one before it in the stream still runs (sm90; gemv from compute
  capability 9.0 on).
prefetch: with dependent_launch, the first k-tiles of A (swap_ab: of B) go to L2 meanwhile (family sm90).

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

Raises ValueError (with need and limit) and TypeError for what cannot be planned.)";

constexpr const char* kernel_docstring =
    R"(A compiled kernel, and what the compiler made of it.

source: the generated CUDA C++, 30 to 50 lines. cubin: machine code (bytes). ptx: compiled anew, to be read.
target: "sm_90a". registers: per thread. spill_bytes: local memory per thread, 0 is none. shared_bytes: per CTA.
compile_ms: milliseconds in NVRTC, 0 when from_disk.)";

constexpr const char* compile_docstring =
    R"(Compiles the kernel of a plan for its target, or takes it from the disk cache. Needs NVRTC, but no GPU.

Raises CompileError.)";

constexpr const char* cache_info_docstring =
    R"(loaded of capacity: kernels in memory. hits, misses, evictions: look-ups there. compiles, disk_hits: where
misses were served from. disk_path: "" where no folder is usable. disk_files, disk_bytes: what it holds.)";

}  // namespace fastgemm::python

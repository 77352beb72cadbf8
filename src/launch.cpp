// Fills the kernel's arguments and hands it to the driver.
#include "launch.hpp"

#include <algorithm>

#include "fusion.hpp"
#include "planner.hpp"
#include "repack.hpp"
#include "tensor_map.hpp"
#include "workspace.hpp"

namespace fastgemm {
namespace {

void set_epilogue(EpilogueParams& params, const GemmProblem& p) {
  for (std::size_t i = 0; i < p.fusion->arrays.size(); ++i) {
    const MatrixView v = fused_array(p, i);
    params.array[i] = {v.data, v.batch_stride, v.row_stride, v.col_stride};
  }
  if (p.gated()) {
    const GateColumns columns = gate_columns(p);
    params.gate_step = columns.step;
    params.gate_offset = columns.offset;
  }
  std::copy(p.fusion->numbers.begin(), p.fusion->numbers.end(), params.number);
}

}  // namespace

Launchable launchable_of(const Plan& plan) {
  const GemmProblem as_computed = oriented(plan.kernel, plan.problem);
  Launchable l{};
  l.config = plan.kernel;
  l.tiles_m = static_cast<std::uint32_t>(tiles_m(plan.kernel, as_computed));
  l.tiles_n = static_cast<std::uint32_t>(tiles_n(plan.kernel, as_computed));
  l.ctas = static_cast<std::uint32_t>(plan.ctas);
  l.k_tiles_of_split = static_cast<std::uint32_t>(k_tiles_of_split(plan.kernel, as_computed));
  return l;
}

FusedParams params_of(const Launchable& l, const GemmProblem& p) {
  FusedParams params;
  if (p.fusion) set_epilogue(params.epilogue, p);
  params.a = p.a.data;
  params.b = p.b.data;
  params.c = p.c.data;
  params.d = p.d.data;
  params.m = p.m;
  params.n = p.n;
  params.k = p.k;
  params.batch = p.batch;
  params.a_m_stride = p.a.row_stride;
  params.a_k_stride = p.a.col_stride;
  params.a_batch_stride = p.a.batch_stride;
  params.b_n_stride = p.b.col_stride;
  params.b_k_stride = p.b.row_stride;
  params.b_batch_stride = p.b.batch_stride;
  params.c_m_stride = p.c.row_stride;
  params.c_n_stride = p.c.col_stride;
  params.c_batch_stride = p.c.batch_stride;
  params.d_m_stride = p.d.row_stride;
  params.d_n_stride = p.d.col_stride;
  params.d_batch_stride = p.d.batch_stride;
  params.splits = static_cast<unsigned>(l.config.split_k);
  params.k_tiles_of_split = l.k_tiles_of_split;
  params.tiles_m = l.tiles_m;
  params.tiles_n = l.tiles_n;
  params.alpha = p.alpha;
  params.beta = p.beta;
  return params;
}

GemmProblem partial_problem(GemmProblem p, void* workspace) {
  p.alpha = 1;
  p.beta = 0;
  p.fusion = nullptr;
  p.d.data = workspace;
  p.d.dtype = DType::f32;
  p.d.row_stride = workspace_pitch(p);
  p.d.col_stride = 1;
  p.d.batch_stride = p.m * p.d.row_stride;
  return p;
}

Reduction reduction_of(const GemmProblem& partial, const GemmProblem& p, const KernelConfig& c) {
  const int lane_bits = reduce_lane_bits(p, c);
  Reduction r;
  r.partial = {static_cast<const float*>(partial.d.data), partial.d.row_stride,
               partial.d.batch_stride, static_cast<unsigned>(c.split_k),
               static_cast<unsigned>(lane_bits)};
  r.ctas = static_cast<std::uint32_t>(ceil_div(reduce_teams(p) << lane_bits, REDUCE_THREADS));
  return r;
}

namespace {

void enqueue(CUfunction function, unsigned ctas, unsigned threads, unsigned shared_bytes,
             bool early_start, void** arguments, const LoadedKernel& kernel, const GemmProblem& p,
             Stream stream) {
  CUlaunchAttribute attribute{};
  attribute.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  attribute.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = ctas;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = threads;
  config.sharedMemBytes = shared_bytes;
  config.hStream = stream;
  config.attrs = &attribute;
  config.numAttrs = early_start ? 1 : 0;
  const CUresult result = driver().launch_kernel_ex(&config, function, arguments, nullptr);
  if (result != CUDA_SUCCESS)
    throw_driver_error(result, "cuLaunchKernelEx",
                       "kernel " + kernel.compiled->name + " with " + std::to_string(ctas) +
                           " CTAs of " + std::to_string(threads) + " threads for " + describe(p) +
                           " on device " + std::to_string(kernel.device.ordinal) + " (" +
                           kernel.device.hardware.name + ")");
}

void launch_gemm(const Launchable& l, const LoadedKernel& kernel, const GemmProblem& p,
                 Stream stream) {
  FusedParams params = params_of(l, p);
  OperandMaps a_maps, b_maps;
  TensorMap d_map;
  void* arguments[] = {&params, &a_maps, &b_maps, &d_map};
  if (l.config.family == Family::sm90) {
    if (!l.config.shifts_rows_of_a()) a_maps = operand_maps(tensor_boxes_a(p, l.config));
    if (!l.config.shifts_rows_of_b()) b_maps = operand_maps(tensor_boxes_b(p, l.config));
    if (l.config.tma_stores) d_map = tensor_map(tensor_box_d(p, l.config));
  }
  enqueue(kernel.function, l.ctas, static_cast<unsigned>(kernel.threads),
          static_cast<unsigned>(kernel.dynamic_shared_bytes), l.config.dependent_launch, arguments,
          kernel, p, stream);
}

void launch_repack(const Launchable& l, const LoadedKernel& kernel, const GemmProblem& p,
                   const GemmProblem& q, Stream stream) {
  RepackParams params = repack_params(p, q, repack_of(l.config));
  void* arguments[] = {&params};
  enqueue(kernel.repack, params.operand[0].ctas + params.operand[1].ctas, REPACK_THREADS, 0,
          l.config.dependent_launch, arguments, kernel, p, stream);
}

void launch_reduce(const Launchable& l, const LoadedKernel& kernel, const GemmProblem& partial,
                   const GemmProblem& p, Stream stream) {
  Reduction reduction = reduction_of(partial, p, l.config);
  FusedParams params = params_of(l, p);
  void* arguments[] = {&reduction.partial, &params};
  enqueue(kernel.reduce, reduction.ctas, REDUCE_THREADS, 0, l.config.dependent_launch, arguments,
          kernel, p, stream);
}

}  // namespace

bool is_capturing(Stream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver().stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void launch(const Launchable& l, const LoadedKernel& kernel, const GemmProblem& p, Stream stream) {
  const Repack which = repack_of(l.config);
  const std::size_t copies = repack_bytes(p, which);
  const std::size_t sums =
      l.config.finishes_apart() ? workspace_bytes(oriented(l.config, p), l.config) : 0;
  if (copies + sums == 0) return launch_gemm(l, kernel, oriented(l.config, p), stream);

  const Workspace workspace(kernel.device, copies + sums, stream);
  const GemmProblem q = repacked(p, which, workspace.data());
  if (copies > 0) launch_repack(l, kernel, p, q, stream);
  const GemmProblem computed = oriented(l.config, q);
  if (sums == 0) return launch_gemm(l, kernel, computed, stream);

  const GemmProblem partial =
      partial_problem(computed, static_cast<char*>(workspace.data()) + copies);
  launch_gemm(l, kernel, partial, stream);
  launch_reduce(l, kernel, partial, computed, stream);
}

}  // namespace fastgemm

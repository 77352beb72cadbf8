// Fills the kernel's arguments and hands it to the driver.
#include "launch.hpp"

#include "fastgemm/device/params.cuh"
#include "planner.hpp"
#include "tensor_map.hpp"

namespace fastgemm {
namespace {

GemmParams params_of(const Launchable& l, const GemmProblem& p) {
  GemmParams params;
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
  params.tiles_m = l.tiles_m;
  params.tiles_n = l.tiles_n;
  params.alpha = p.alpha;
  params.beta = p.beta;
  return params;
}

}  // namespace

bool is_capturing(Stream stream) {
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  return driver().stream_is_capturing(stream, &status) == CUDA_SUCCESS &&
         status == CU_STREAM_CAPTURE_STATUS_ACTIVE;
}

void launch(const Launchable& l, const LoadedKernel& kernel, const GemmProblem& p, Stream stream) {
  GemmParams params = params_of(l, p);
  TensorMap maps[3];
  void* arguments[] = {&params, &maps[0], &maps[1], &maps[2]};
  if (l.config.family == Family::sm90) {
    maps[0] = tensor_map(tensor_box_a(p, l.config));
    maps[1] = tensor_map(tensor_box_b(p, l.config));
    if (l.config.tma_stores) maps[2] = tensor_map(tensor_box_d(p, l.config));
  }
  CUlaunchAttribute early_start{};
  early_start.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
  early_start.value.programmaticStreamSerializationAllowed = 1;
  CUlaunchConfig config{};
  config.gridDimX = l.ctas;
  config.gridDimY = config.gridDimZ = config.blockDimY = config.blockDimZ = 1;
  config.blockDimX = static_cast<unsigned>(kernel.threads);
  config.sharedMemBytes = static_cast<unsigned>(kernel.dynamic_shared_bytes);
  config.hStream = stream;
  config.attrs = &early_start;
  config.numAttrs = l.config.dependent_launch ? 1 : 0;
  const CUresult result = driver().launch_kernel_ex(&config, kernel.function, arguments, nullptr);
  if (result != CUDA_SUCCESS)
    throw_driver_error(result, "cuLaunchKernelEx",
                       "kernel " + kernel.compiled->name + " with " + std::to_string(l.ctas) +
                           " CTAs of " + std::to_string(kernel.threads) + " threads for " +
                           describe(p) + " on device " + std::to_string(kernel.device.ordinal) +
                           " (" + kernel.device.hardware.name + ")");
}

}  // namespace fastgemm

// Writes the source of one kernel: its constants by name, and an extern "C" entry.
#include "codegen.hpp"

#include <cstdio>

#include "fastgemm/kernel.hpp"
#include "fusion.hpp"
#include "planner.hpp"

namespace fastgemm {
namespace {

const char* short_name(DType t) {
  static constexpr const char* names[] = {"f16", "bf16", "f32", "i8", "e4m3", "e5m2"};
  return names[static_cast<int>(t)];
}
const char* device_major(Major m) { return m == Major::k ? "Major::K" : "Major::MN"; }
const char* device_bool(bool b) { return b ? "true" : "false"; }
int device_family(Family f) {
  if (f == Family::gemv) return 0;
  if (f == Family::sm90) return 90;
  return f == Family::sm70 ? 70 : f == Family::sm75 ? 75 : 80;
}

class Source {
 public:
  void text(const std::string& lines) { text_ += lines; }
  void line(const std::string& line) { text_ += line + "\n"; }
  void constant(const std::string& type, const std::string& name, const std::string& value) {
    line("  static constexpr " + type + " " + name + " = " + value + ";");
  }
  void constant(const std::string& name, int value) {
    constant("int", name, std::to_string(value));
  }
  void constant(const std::string& name, bool value) { constant("bool", name, device_bool(value)); }
  std::string str() const { return text_; }

 private:
  std::string text_;
};

}  // namespace

std::string kernel_name(const KernelConfig& k) {
  const auto n = [](int i) { return std::to_string(i); };
  std::string s = std::string("fastgemm_") + name(k.family) + "_" + short_name(k.in);
  if (k.out != k.in) s += std::string("_") + short_name(k.out);
  s += std::string("_") + (k.a_major == Major::k ? "k" : "m") + (k.b_major == Major::k ? "k" : "n");
  s += "_" + n(k.block_m) + "x" + n(k.block_n) + "x" + n(k.block_k) + "_warp" + n(k.warp_m) + "x" +
       n(k.warp_n);
  s += "_stages" + n(k.num_stages);
  if (k.family != Family::gemv) s += "_raster" + n(k.raster_group);
  if (k.cluster() > 1)
    s += "_cluster" + n(k.cluster_m) + "x" + n(k.cluster_n) + "x" + n(k.cluster_k) +
         (k.multicast ? "" : "_unicast");
  if (k.split_k > 1) s += "_splitk";
  if (k.split_k == 1 && k.apart) s += "_apart";
  if (k.ping_pong)
    s += "_pingpong";
  else if (k.persistent)
    s += "_persistent";
  if (k.swap_ab) s += "_swapped";
  if (k.repack_a || k.repack_b)
    s += std::string("_repack") + (k.repack_a ? "a" : "") + (k.repack_b ? "b" : "");
  if (k.shifts()) s += std::string("_shift") + (k.shift_a ? "a" : "") + (k.shift_b ? "b" : "");
  if (k.tma_stores) s += "_tmastores";
  if (k.dependent_launch) s += k.prefetch ? "_pdl_prefetch" : "_pdl";
  if (!k.swizzle && k.family != Family::gemv) s += "_plain";
  if (k.swizzle && k.swizzle_bytes != 128) s += "_swizzle" + n(k.swizzle_bytes);
  if (!k.staged_stores && k.family != Family::gemv) s += "_direct";
  s += "_copy" + n(k.a_copy_bytes) + "_" + n(k.b_copy_bytes) + "_vec" + n(k.d_vector);
  if (k.has_c) s += "_c";
  if (k.epilogue) {
    char id[32];
    std::snprintf(id, sizeof id, "_fused%016llx", static_cast<unsigned long long>(k.epilogue_id));
    s += id;
  }
  return s;
}

std::string repack_kernel_name(const KernelConfig& k) { return kernel_name(k) + "_repack"; }

std::string reduce_kernel_name(const KernelConfig& k) { return kernel_name(k) + "_reduce"; }

std::string kernel_source(const KernelConfig& k) {
  Source s;
  const bool sm90 = k.family == Family::sm90, split = k.finishes_apart();
  const bool repack = k.repack_a || k.repack_b;
  const bool gemv = k.family == Family::gemv;
  const bool gated = k.epilogue && k.epilogue->gated;
  const std::string finish_params = k.epilogue ? "FusedParams" : "GemmParams";
  const std::string params = split ? "GemmParams" : finish_params;
  s.line(std::string("#include \"fastgemm/device/") +
         (gemv   ? "gemv_kernel"
          : sm90 ? "gemm_kernel_sm90"
                 : "gemm_kernel") +
         ".cuh\"");
  if (repack) s.line("#include \"fastgemm/device/repack.cuh\"");
  if (split) s.line("#include \"fastgemm/device/reduce_splits.cuh\"");
  if (k.epilogue) s.line("#include \"fastgemm/device/activations.cuh\"");
  s.line("using namespace fastgemm;");
  if (k.epilogue) s.text(epilogue_source(k));
  s.line("struct Config {");
  s.line(std::string("  using Input = ") + device_type(k.in) +
         "; using Output = " + device_type(split ? DType::f32 : k.out) + ";");
  s.constant("FAMILY", device_family(k.family));
  s.constant("Major", "A_MAJOR", device_major(k.a_major));
  s.constant("Major", "B_MAJOR", device_major(k.b_major));
  s.constant("BLOCK_M", k.block_m);
  s.constant("BLOCK_N", k.block_n);
  s.constant("BLOCK_K", k.block_k);
  s.constant("WARP_M", k.warp_m);
  s.constant("WARP_N", k.warp_n);
  s.constant("NUM_STAGES", k.num_stages);
  s.constant("SWIZZLE", k.swizzle);
  s.constant("RASTER_GROUP", k.raster_group);
  s.constant("STAGED_STORES", k.staged_stores);
  s.constant("SPLIT_K", k.split_k > 1);
  s.constant("SWAP_AB", k.swap_ab);
  s.constant("DEPENDENT_LAUNCH", k.dependent_launch);
  if (sm90) {
    s.constant("SWIZZLE_BYTES", k.swizzle_bytes);
    s.constant("CLUSTER_M", k.cluster_m);
    s.constant("CLUSTER_N", k.cluster_n);
    s.constant("CLUSTER_K", k.cluster_k);
    s.constant("MULTICAST", k.multicast);
    s.constant("TMA_STORES", k.tma_stores);
    s.constant("PREFETCH", k.prefetch);
    s.constant("PING_PONG", k.ping_pong);
    s.constant("PERSISTENT", k.persistent);
  }
  if (!gemv) {
    s.constant("SHIFT_A", k.shifts_rows_of_a());
    s.constant("SHIFT_B", k.shifts_rows_of_b());
  }
  s.constant("A_COPY_BYTES", k.a_copy_bytes);
  s.constant("B_COPY_BYTES", k.b_copy_bytes);
  s.constant("D_VECTOR", split ? 4 : k.d_vector);
  s.constant("HAS_C", k.has_c && !split);
  s.constant("Gate", "GATE",
             k.gate_along_m()   ? "Gate::M"
             : k.gate_along_n() ? "Gate::N"
                                : "Gate::NONE");
  s.line(std::string("  using Epilogue = ") +
         (k.epilogue && !split ? "::Epilogue;" : "NoEpilogue;"));
  s.line("};");
  s.line("static_assert(SHARED_BYTES<Config> == " + std::to_string(shared_bytes(k)) + ");");
  s.line("extern \"C\" __global__ void __launch_bounds__(" + std::to_string(k.threads()) + ", " +
         std::to_string(launch_ctas_per_sm(k)) + ")" +
         (k.cluster() > 1 ? " __cluster_dims__(" + std::to_string(k.cluster()) + ", 1, 1)" : ""));
  if (sm90) {
    s.line(kernel_name(k) + "(const __grid_constant__ " + params + " params,");
    s.line(
        "    const __grid_constant__ OperandMaps a_maps, const __grid_constant__ OperandMaps "
        "b_maps,");
    s.line("    const __grid_constant__ TensorMap d_map) {");
    s.line("  gemm_kernel_sm90<Config>(params, a_maps, b_maps, d_map);");
  } else {
    s.line(kernel_name(k) + "(const __grid_constant__ " + params + " params) {");
    s.line(std::string("  ") + (gemv ? "gemv" : "gemm") + "_kernel<Config>(params);");
  }
  s.line("}");
  if (repack) {
    s.line("extern \"C\" __global__ void __launch_bounds__(REPACK_THREADS)");
    s.line(repack_kernel_name(k) + "(const __grid_constant__ RepackParams params) {");
    s.line("  repack<Config::DEPENDENT_LAUNCH>(params);");
    s.line("}");
  }
  if (split) {
    s.line("struct Finish : Config {");
    s.line(std::string("  using Output = ") + device_type(k.out) + ";");
    s.constant("D_VECTOR", k.d_vector);
    s.constant("HAS_C", k.has_c);
    if (k.epilogue) s.line("  using Epilogue = ::Epilogue;");
    if (gated) s.constant("Gate", "GATE", k.epilogue_transposed ? "Gate::M" : "Gate::N");
    s.line("};");
    // For more CTAs an SM the compiler would save registers, and have fewer loads under way.
    s.line("extern \"C\" __global__ void __launch_bounds__(REDUCE_THREADS, 4)");
    s.line(reduce_kernel_name(k) + "(const __grid_constant__ PartialSums partial,");
    s.line(std::string("    const __grid_constant__ ") + finish_params + " params) {");
    s.line(std::string("  reduce_") + (gated ? "gated_" : "") + "splits<Finish>(partial, params);");
    s.line("}");
  }
  return s.str();
}

std::string generate_source(const Plan& plan) { return kernel_source(plan.kernel); }

}  // namespace fastgemm

// From source to machine code.
#include "compiler.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <optional>

#include "codegen.hpp"
#include "cubin.hpp"
#include "disk_cache.hpp"
#include "fastgemm/error.hpp"
#include "fastgemm/hardware.hpp"
#include "file_io.hpp"
#include "hash.hpp"
#include "log_internal.hpp"
#include "nvrtc.hpp"

namespace fastgemm {
namespace {

constexpr std::size_t most_compiled_kernels = 256;
constexpr const char* cache_format = "fastgemm kernel 1";

using CompiledCache = LruCache<std::string, const CompiledKernel>;

CompiledCache& compiled_cache() {
  static auto& cache = *new CompiledCache(most_compiled_kernels);
  return cache;
}

std::atomic<std::int64_t> compiles{0}, disk_hits{0};

// Code for an SoC runs on no other chip of its major, and the SoC runs no other's.
bool is_embedded(int cc) {
  return cc == 53 || cc == 62 || cc == 72 || cc == 87 || cc == 88 || cc == 101 || cc == 110;
}

// The families that use instructions of one chip only need its own target: sm_90a.
std::string target_suffix(Family family) { return family == Family::sm90 ? "a" : ""; }

std::vector<std::string> common_options() { return {"-std=c++17"}; }

std::vector<std::string> options_for(const std::string& arch) {
  std::vector<std::string> options = common_options();
  options.push_back("-arch=" + arch);
  return options;
}

std::string join(const std::vector<std::string>& words, const char* separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

std::string first_error(const std::string& log) {
  const std::size_t at = log.find("error");
  if (at == std::string::npos) return {};
  const std::size_t begin = log.rfind('\n', at) + 1;  // npos + 1 is 0
  return log.substr(begin, log.find('\n', at) - begin);
}

// Outside the cache, under a name that follows from the content: failing again overwrites it.
std::string keep_source(const std::string& name, const std::string& source) {
  const std::string folder = private_temp_folder_name();
  const std::string path = folder + "/" + name + "-" + hash128(source).hex() + ".cu";
  if (!prepare_folder(folder).empty() || !write_file_atomically(path, source).empty()) return {};
  return path;
}

struct Request {
  std::string name, source;
  int cc;
  std::string suffix;  // of the target
  int dynamic_shared_bytes;
  std::string description;  // for the log
};

// What NVRTC made, as it lies in the disk cache: target, version, cubin.
struct Artifact {
  std::string target, nvrtc_version;
  std::string cubin;
};

std::string pack(const Artifact& artifact) {
  return artifact.target + "\n" + artifact.nvrtc_version + "\n" + artifact.cubin;
}

std::optional<Artifact> unpack(const std::string& payload) {
  const std::size_t first = payload.find('\n');
  if (first == std::string::npos) return {};
  const std::size_t second = payload.find('\n', first + 1);
  if (second == std::string::npos) return {};
  return Artifact{payload.substr(0, first), payload.substr(first + 1, second - first - 1),
                  payload.substr(second + 1)};
}

Artifact run_nvrtc(const Nvrtc& nvrtc, const Request& request) {
  const bool exact = !request.suffix.empty();
  const std::string target =
      arch_name(pick_target(request.cc, nvrtc.archs(), nvrtc.version(), exact)) + request.suffix;
  try {
    const Nvrtc::Result result =
        nvrtc.compile(request.name + ".cu", request.source, device_headers(), options_for(target),
                      Nvrtc::Output::cubin);
    // C75xx: ptxas gave up on something that the kernel counts on, and only says so in passing.
    if (result.log.find("C75") != std::string::npos)
      log_warning("NVRTC on " + request.name + " for " + target + ": " + result.log);
    return {target, nvrtc.version(), std::string(result.code.begin(), result.code.end())};
  } catch (const CompileError& error) {
    const std::string path = keep_source(request.name, request.source);
    std::string what = "NVRTC " + nvrtc.version() + " could not compile " + request.name + " for " +
                       target + ": " + error.what();
    if (const std::string line = first_error(error.log); !line.empty()) what += "; " + line;
    if (!path.empty()) what += "\nThe source was kept in " + path;
    if (!error.log.empty()) what += "\nNVRTC's log:\n" + error.log;
    throw CompileError(what, error.log, path);
  }
}

std::shared_ptr<CompiledKernel> to_kernel(Artifact artifact, const Request& request) {
  const CubinResources resources = read_cubin(artifact.cubin, request.name);
  auto kernel = std::make_shared<CompiledKernel>();
  kernel->name = request.name;
  kernel->source = request.source;
  kernel->target = std::move(artifact.target);
  kernel->nvrtc_version = std::move(artifact.nvrtc_version);
  kernel->cubin.assign(artifact.cubin.begin(), artifact.cubin.end());
  kernel->registers = resources.registers;
  kernel->spill_bytes = resources.local_bytes;
  kernel->shared_bytes = resources.static_shared_bytes + request.dynamic_shared_bytes;
  return kernel;
}

std::shared_ptr<CompiledKernel> from_disk(const std::string& key, const Request& request) {
  const std::optional<std::string> payload = disk_cache().load(key);
  if (!payload) return nullptr;
  std::optional<Artifact> artifact = unpack(*payload);
  if (!artifact) return nullptr;
  try {
    auto kernel = to_kernel(std::move(*artifact), request);
    kernel->from_disk = true;
    return kernel;
  } catch (const CompileError&) {
    return nullptr;
  }
}

void report(const CompiledKernel& kernel, const std::string& description, double ms) {
  if (kernel.spill_bytes > 0)
    log_warning(kernel.name + " for " + kernel.target + " keeps " +
                std::to_string(kernel.spill_bytes) +
                " bytes per thread in local memory: spilled registers or arrays");
  if (!verbose()) return;
  char time[32];
  std::snprintf(time, sizeof time, "%.1f ms", ms);
  log_info(std::string(kernel.from_disk ? "disk cache hit: " : "compiled: ") + kernel.name +
           (description.empty() ? "" : " (" + description + ")") + " for " + kernel.target +
           ", NVRTC " + kernel.nvrtc_version + ": " + std::to_string(kernel.registers) +
           " registers, " + std::to_string(kernel.shared_bytes) + " bytes of shared memory, " +
           std::to_string(kernel.spill_bytes) + " bytes spilled, " + time);
}

// The target that is compiled for follows from the one asked for and NVRTC's build.
std::string disk_key(const Request& request) {
  return cache_key(request.source, device_headers().hash, nvrtc_for(request.cc).identity(),
                   common_options(), arch_name(request.cc) + request.suffix);
}

std::string memory_key(const Request& request, const std::string& key) {
  return request.name + " " + std::to_string(request.dynamic_shared_bytes) + "\n" + key;
}

Request request_of(const Plan& plan) {
  return {kernel_name(plan.kernel),          generate_source(plan), plan.hardware.arch.cc,
          target_suffix(plan.kernel.family), plan.shared_bytes,     plan.kernel.str()};
}

std::shared_ptr<const CompiledKernel> compile(const Request& request) {
  const std::string key = disk_key(request);
  const auto make = [&]() -> std::shared_ptr<const CompiledKernel> {
    const auto start = std::chrono::steady_clock::now();
    const auto elapsed_ms = [&] {
      const auto elapsed = std::chrono::steady_clock::now() - start;
      return std::chrono::duration<double, std::milli>(elapsed).count();
    };
    std::shared_ptr<CompiledKernel> kernel = from_disk(key, request);
    if (kernel) {
      ++disk_hits;
    } else {
      const Artifact artifact = run_nvrtc(nvrtc_for(request.cc), request);
      kernel = to_kernel(artifact, request);
      kernel->compile_ms = elapsed_ms();
      ++compiles;
      disk_cache().store(key, pack(artifact));
    }
    report(*kernel, request.description, elapsed_ms());
    return kernel;
  };
  return compiled_cache().get_or_create(memory_key(request, key), make);
}

}  // namespace

int pick_target(int cc, const std::vector<int>& supported, const std::string& nvrtc_version,
                bool exact) {
  int best = 0;
  for (int candidate : supported) {
    if (candidate == cc) return cc;
    if (!exact && candidate < cc && candidate / 10 == cc / 10 && !is_embedded(cc) &&
        !is_embedded(candidate))
      best = std::max(best, candidate);
  }
  if (best) return best;
  std::vector<std::string> names;
  for (int candidate : supported) names.push_back(arch_name(candidate));
  const bool dropped =
      !supported.empty() && cc < *std::min_element(supported.begin(), supported.end());
  throw CompileError("NVRTC " + nvrtc_version + " cannot compile for compute capability " +
                     std::to_string(cc / 10) + "." + std::to_string(cc % 10) + " (" +
                     arch_name(cc) + "); it supports " + join(names, ", ") + ". " +
                     (dropped ? "It has dropped this GPU: pip install nvidia-cuda-nvrtc-cu12, or "
                                "set FASTGEMM_NVRTC to an older libnvrtc.so"
                              : "Install a newer one: pip install -U nvidia-cuda-nvrtc"));
}

std::string cache_key(const std::string& source, const std::string& headers_hash,
                      const std::string& nvrtc_identity, const std::vector<std::string>& options,
                      const std::string& requested_target) {
  return std::string(cache_format) + "\nnvrtc " + nvrtc_identity + "\nheaders " + headers_hash +
         "\noptions " + join(options, " ") + "\ntarget " + requested_target + "\n" + source;
}

std::shared_ptr<const CompiledKernel> compile_source(const std::string& name,
                                                     const std::string& source, int cc,
                                                     int dynamic_shared_bytes) {
  return compile({name, source, cc, {}, dynamic_shared_bytes, {}});
}

std::shared_ptr<const CompiledKernel> compile(const Plan& plan) {
  return compile(request_of(plan));
}

bool is_compiled(const Plan& plan) {
  const Request request = request_of(plan);
  const std::string key = disk_key(request);
  return compiled_cache().get(memory_key(request, key)) || from_disk(key, request);
}

std::string CompiledKernel::ptx() const {
  const int cc = std::atoi(target.c_str() + target.find('_') + 1);
  const std::string suffix = target.substr(target.find('_'));
  const Nvrtc::Result result = nvrtc_for(cc).compile(
      name + ".cu", source, device_headers(), options_for("compute" + suffix), Nvrtc::Output::ptx);
  return std::string(result.code.begin(), std::find(result.code.begin(), result.code.end(), '\0'));
}

CompileCounts compile_counts() { return {compiles, disk_hits}; }

void forget_compiled() { compiled_cache().clear(); }

}  // namespace fastgemm

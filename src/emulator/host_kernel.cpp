// Finds or compiles a kernel for the host.
#include "emulator/host_kernel.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <vector>

#include "codegen.hpp"
#include "device_headers.hpp"
#include "disk_cache.hpp"
#include "dynamic_library.hpp"
#include "emulator/run_program.hpp"
#include "fastgemm/error.hpp"
#include "file_io.hpp"
#include "hash.hpp"
#include "log_internal.hpp"
#include "lru_cache.hpp"

namespace fastgemm::emulated {
namespace {

namespace fs = std::filesystem;

constexpr const char* ahead_library = "libfastgemm_emulated.so";

std::vector<std::string> options() {
  return {"-std=c++17", "-O2", "-fPIC", "-shared", "-w", "-Wno-psabi", "-fvisibility=hidden"};
}

std::string entry_name(const std::string& kernel) { return kernel + "_entry"; }

// The kernels of a source by name, and where their entries go.
using Place = const KernelEntry* HostKernel::*;
std::vector<std::pair<std::string, Place>> kernels_of(const KernelConfig& config) {
  std::vector<std::pair<std::string, Place>> kernels = {{kernel_name(config), &HostKernel::main}};
  if (config.repack_a || config.repack_b)
    kernels.emplace_back(repack_kernel_name(config), &HostKernel::repack);
  if (config.finishes_apart())
    kernels.emplace_back(reduce_kernel_name(config), &HostKernel::reduce);
  return kernels;
}

// From what a kernel is compiled: its source, and the headers.
std::string key_of(const std::string& source) {
  return Hasher().add_field(source).add_field(device_headers().hash).value().hex();
}

std::string kernel_part(const KernelConfig& config) {
  return "#include \"fastgemm/device/emulated/prelude.cuh\"\n" + kernel_source(config);
}

HostKernel entries_in(const DynamicLibrary& library, const KernelConfig& config,
                      const std::string& key) {
  HostKernel found;
  for (const auto& [name, place] : kernels_of(config)) {
    const KernelEntry* entry = nullptr;
    if (!library.find(entry_name(name).c_str(), entry)) return {};
    if (entry->interface_version != INTERFACE_VERSION || key != entry->key) return {};
    found.*place = entry;
  }
  return found;
}

// The library beside this one, with the kernels that were compiled when it was built.
const DynamicLibrary& compiled_ahead() {
  static const DynamicLibrary library = [] {
    Dl_info here;
    if (!::dladdr(reinterpret_cast<const void*>(&key_of), &here) || !here.dli_fname)
      return DynamicLibrary();
    return DynamicLibrary::open((fs::path(here.dli_fname).parent_path() / ahead_library).string());
  }();
  return library;
}

// A folder of this call's own, gone when it ends.
class ScratchFolder {
 public:
  ScratchFolder() : path_(private_temp_folder_name() + "/emulated-XXXXXX") {
    const std::string refused = prepare_folder(private_temp_folder_name());
    if (!refused.empty() || !::mkdtemp(path_.data()))
      throw CompileError("no folder to compile in: " + (refused.empty() ? path_ : refused));
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;

  std::string write(const std::string& name, const std::string& content) const {
    const fs::path file = fs::path(path_) / name;
    fs::create_directories(file.parent_path());
    const std::string failure = write_file_atomically(file.string(), content);
    if (!failure.empty()) throw CompileError("cannot write " + file.string() + ": " + failure);
    return file.string();
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::string compiler() {
  if (const char* own = std::getenv("CXX"); own && *own) return own;
  for (const char* name : {"c++", "g++", "clang++"})
    if (has_program(name)) return name;
  throw CompileError(
      "the emulator has no C++ compiler for this kernel, which was not compiled ahead: install one "
      "(apt-get install g++), or name it in CXX");
}

std::string compile_library(const std::string& name, const std::string& source) {
  const ScratchFolder scratch;
  const HeaderSet& headers = device_headers();
  for (std::size_t i = 0; i < headers.names.size(); ++i)
    scratch.write(headers.names[i], headers.contents[i]);
  const std::string output = scratch.path() + "/kernel.so";
  std::vector<std::string> command = {compiler()};
  for (const std::string& option : options()) command.push_back(option);
  for (const std::string& word : {std::string("-I"), scratch.path(), std::string("-o"), output,
                                  scratch.write(name + ".cpp", source)})
    command.push_back(word);
  const auto start = std::chrono::steady_clock::now();
  const ProgramResult result = run_program(command);
  const std::optional<std::string> library = read_file(output);
  if (result.status != 0 || !library)
    throw CompileError(
        command[0] + " could not compile " + name + " for the emulator:\n" + result.output,
        result.output);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  log_info("compiled for the emulator: " + name + " by " + command[0] + ", " +
           std::to_string(seconds.count()) + " s");
  return *library;
}

DynamicLibrary open_image(const std::string& name, const std::string& image) {
  const ScratchFolder scratch;
  std::string error;
  const std::string file = scratch.write(name + ".so", image);
  DynamicLibrary library = DynamicLibrary::open(file, &error);
  if (!library) throw CompileError("cannot load " + name + " for the emulator: " + error);
  return library;
}

HostKernel find_or_compile(const KernelConfig& config) {
  const std::string key = key_of(kernel_part(config)), name = kernel_name(config);
  if (compiled_ahead())
    if (const HostKernel kernel = entries_in(compiled_ahead(), config, key); kernel.main)
      return kernel;
  std::string disk_key = "fastgemm emulated kernel 1\nmachine ";
#if defined(__x86_64__)
  disk_key += "x86-64";
#else
  disk_key += "AArch64";
#endif
  for (const std::string& option : options()) disk_key += " " + option;
  disk_key += "\nkey " + key;
  if (const auto image = disk_cache().load(disk_key))
    if (const HostKernel kernel = entries_in(open_image(name, *image), config, key); kernel.main)
      return kernel;
  const std::string image = compile_library(name, host_source(config));
  disk_cache().store(disk_key, image);
  const HostKernel kernel = entries_in(open_image(name, image), config, key);
  if (!kernel.main) throw CompileError("the compiled " + name + " has no entry for the emulator");
  return kernel;
}

}  // namespace

std::string host_source(const KernelConfig& config) {
  const std::string part = kernel_part(config), key = key_of(part);
  std::string source = part + "#include \"fastgemm/device/emulated/machine.cuh\"\n";
  for (const auto& [name, place] : kernels_of(config))
    source +=
        "extern \"C\" __attribute__((visibility(\"default\"))) const\n"
        "fastgemm::emulated::KernelEntry " +
        entry_name(name) + " =\n    fastgemm::emulated::kernel_entry<&" + name + ">(\"" + key +
        "\");\n";
  return source;
}

HostKernel host_kernel(const KernelConfig& config) {
  static auto& cache = *new LruCache<KernelConfig, const HostKernel, KernelConfigHash>(4096);
  return *cache.get_or_create(
      config, [&] { return std::make_shared<const HostKernel>(find_or_compile(config)); });
}

}  // namespace fastgemm::emulated

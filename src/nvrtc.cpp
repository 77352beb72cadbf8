// Opening and calling one libnvrtc.
#include "nvrtc.hpp"

#include <algorithm>
#include <mutex>

#include "dynamic_library.hpp"
#include "fastgemm/error.hpp"

namespace fastgemm {

struct Nvrtc::Opened {
  NvrtcApi api;
  std::string version;
  std::vector<int> archs;
};

namespace {

template <typename Function>
void require(const DynamicLibrary& library, const std::string& path, const char* symbol,
             Function*& entry) {
  if (!library.find(symbol, entry))
    throw CompileError(path + " is no NVRTC that fastgemm can use: it has no " + symbol +
                       "; needed is that of CUDA 12 or 13");
}

void check(const NvrtcApi& api, nvrtcResult result, const char* call) {
  if (result != NVRTC_SUCCESS)
    throw CompileError(std::string(call) + " gave " + api.error_string(result));
}

class Program {
 public:
  Program(const NvrtcApi& api, const std::string& name, const std::string& source,
          const HeaderSet& headers)
      : api_(api) {
    std::vector<const char*> names, contents;
    for (const std::string& header : headers.names) names.push_back(header.c_str());
    for (const std::string& header : headers.contents) contents.push_back(header.c_str());
    check(api_,
          api_.create_program(&program_, source.c_str(), name.c_str(),
                              static_cast<int>(names.size()), contents.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~Program() { api_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  nvrtcResult compile(const std::vector<std::string>& options) {
    std::vector<const char*> arguments;
    for (const std::string& option : options) arguments.push_back(option.c_str());
    return api_.compile_program(program_, static_cast<int>(arguments.size()), arguments.data());
  }

  std::string log() const {
    const std::vector<char> text = get(api_.log_size, api_.log, "nvrtcGetProgramLog");
    return std::string(text.begin(), std::find(text.begin(), text.end(), '\0'));
  }

  std::vector<char> code(Nvrtc::Output output) const {
    return output == Nvrtc::Output::cubin ? get(api_.cubin_size, api_.cubin, "nvrtcGetCUBIN")
                                          : get(api_.ptx_size, api_.ptx, "nvrtcGetPTX");
  }

 private:
  std::vector<char> get(nvrtcResult (*size_of)(nvrtcProgram, std::size_t*),
                        nvrtcResult (*copy)(nvrtcProgram, char*), const char* call) const {
    std::size_t size = 0;
    check(api_, size_of(program_, &size), call);
    std::vector<char> bytes(size);
    if (size) check(api_, copy(program_, bytes.data()), call);
    return bytes;
  }

  const NvrtcApi& api_;
  nvrtcProgram program_ = nullptr;
};

// Not every NVRTC wheel finds its own builtins; once loaded, they are found by their soname.
void open_builtins(const std::string& nvrtc_path, const std::string& version) {
  const std::string folder = nvrtc_path.substr(0, nvrtc_path.find_last_of('/') + 1);
  DynamicLibrary::open(folder + "libnvrtc-builtins.so." + version);
}

}  // namespace

Nvrtc::Nvrtc(std::string path, std::string identity)
    : path_(std::move(path)), identity_(std::move(identity)) {}

Nvrtc::~Nvrtc() = default;

const Nvrtc::Opened& Nvrtc::opened() const {
  static auto& mutex = *new std::mutex;
  std::lock_guard<std::mutex> lock(mutex);
  if (opened_) return *opened_;
  std::string error;
  const DynamicLibrary library = DynamicLibrary::open(path_, &error);
  if (!library) throw CompileError("NVRTC cannot be opened: " + error);
  auto opened = std::make_unique<Opened>();
#define FASTGEMM_FIND(name, symbol, parameters) require(library, path_, #symbol, opened->api.name);
  FASTGEMM_NVRTC_ENTRIES(FASTGEMM_FIND)
#undef FASTGEMM_FIND
  require(library, path_, "nvrtcGetErrorString", opened->api.error_string);
  int major = 0, minor = 0, count = 0;
  check(opened->api, opened->api.version(&major, &minor), "nvrtcVersion");
  opened->version = std::to_string(major) + "." + std::to_string(minor);
  check(opened->api, opened->api.num_supported_archs(&count), "nvrtcGetNumSupportedArchs");
  opened->archs.resize(static_cast<std::size_t>(std::max(count, 0)));
  if (count > 0)
    check(opened->api, opened->api.supported_archs(opened->archs.data()), "nvrtcGetSupportedArchs");
  std::sort(opened->archs.begin(), opened->archs.end());
  open_builtins(path_, opened->version);
  opened_ = std::move(opened);
  return *opened_;
}

const std::string& Nvrtc::version() const { return opened().version; }

const std::vector<int>& Nvrtc::archs() const { return opened().archs; }

Nvrtc::Result Nvrtc::compile(const std::string& name, const std::string& source,
                             const HeaderSet& headers, const std::vector<std::string>& options,
                             Output output) const {
  const NvrtcApi& api = opened().api;
  Program program(api, name, source, headers);
  const nvrtcResult result = program.compile(options);
  std::string log = program.log();
  if (result != NVRTC_SUCCESS) throw CompileError(api.error_string(result), std::move(log));
  return {program.code(output), std::move(log)};
}

}  // namespace fastgemm

// Where libnvrtc is looked for, and which of several is taken.
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "driver.hpp"
#include "dynamic_library.hpp"
#include "fastgemm/error.hpp"
#include "fastgemm/kernel.hpp"
#include "hash.hpp"
#include "nvrtc.hpp"

namespace fastgemm {
namespace {

constexpr int majors[] = {13, 12};  // those supported, the preferred first
constexpr int oldest_cc_of_13 = 75;

struct Found {
  std::string path, identity;
  int major;  // 0: not told by the file's name
};

std::string soname(int major) { return "libnvrtc.so." + std::to_string(major); }

int major_of(const std::string& path) {
  const std::size_t at = path.rfind(".so.");
  return at == std::string::npos ? 0 : std::atoi(path.c_str() + at + 4);
}

#if defined(__x86_64__)
constexpr int own_machine = EM_X86_64;
#else
constexpr int own_machine = EM_AARCH64;
#endif

// Size and notes (the linker's build id) of a shared object for this machine: they differ between
// any two builds of NVRTC. Empty when it is nothing that could be loaded.
std::string identity_of(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  struct stat status{};
  Elf64_Ehdr header{};
  Elf64_Phdr segment{};
  std::string identity;
  if (::fstat(fd, &status) == 0 && ::read(fd, &header, sizeof header) == sizeof header &&
      std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_type == ET_DYN &&
      header.e_machine == own_machine && header.e_phentsize == sizeof segment) {
    Hasher notes;
    for (int i = 0; i < header.e_phnum; ++i) {
      const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
      if (::pread(fd, &segment, sizeof segment, at) != sizeof segment) break;
      if (segment.p_type != PT_NOTE) continue;
      char note[1024];
      const ssize_t got = ::pread(fd, note, std::min<std::size_t>(sizeof note, segment.p_filesz),
                                  static_cast<off_t>(segment.p_offset));
      if (got > 0) notes.add_field({note, static_cast<std::size_t>(got)});
    }
    identity = std::to_string(status.st_size) + "-" + notes.value().hex();
  }
  ::close(fd);
  return identity;
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string own_folder() {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&own_folder), &info) == 0 || !info.dli_fname)
    return ".";
  const std::string path = info.dli_fname;
  return path.substr(0, path.find_last_of('/') + 1) + ".";
}

class Search {
 public:
  Search(int cc, std::vector<std::string> hints) : cc_(cc), hints_(std::move(hints)) {
    driver_major_ = driver_version() / 1000;
  }

  // Throws CompileError.
  Found run() {
    if (const std::string setting = environment("FASTGEMM_NVRTC"); !setting.empty())
      return explicit_choice(setting);
    if (already_loaded() || in_folders() || in_system()) return best_;
    if (!best_.path.empty()) return best_;
    std::string places;
    for (const std::string& place : searched_) places += "\n  " + place;
    throw CompileError(
        "NVRTC, CUDA's run-time compiler, was not found. Install it: pip install "
        "nvidia-cuda-nvrtc (CUDA 13) or nvidia-cuda-nvrtc-cu12, or set FASTGEMM_NVRTC to the path "
        "of libnvrtc.so. Searched were:" +
        places);
  }

 private:
  bool suits(int major) const {
    return (driver_major_ == 0 || major <= driver_major_) &&
           (cc_ == 0 || cc_ >= oldest_cc_of_13 || major < 13);
  }

  // True when the search is over. One that does not suit is kept for want of a better one.
  bool consider(const std::string& path) {
    std::string identity = identity_of(path);
    if (identity.empty()) {
      searched_.push_back(path + " (is there, but no library for this machine)");
      return false;
    }
    const int major = major_of(path);
    if (best_.path.empty() || suits(major)) best_ = {path, std::move(identity), major};
    return suits(major);
  }

  bool in_folder(const std::string& folder) {
    for (int major : majors) {
      const std::string path = folder + "/" + soname(major);
      if (::access(path.c_str(), F_OK) == 0 && consider(path)) return true;
    }
    searched_.push_back(folder);
    return false;
  }

  Found explicit_choice(const std::string& setting) {
    struct stat status;
    if (::stat(setting.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) {
      in_folder(setting);
    } else {
      consider(setting);
    }
    if (best_.path.empty())
      throw CompileError("FASTGEMM_NVRTC=" + setting +
                         " names neither a libnvrtc.so for this machine nor a folder with " +
                         soname(majors[0]) + " or " + soname(majors[1]));
    return best_;
  }

  bool already_loaded() {
    for (int major : majors) {
      if (const auto library = DynamicLibrary::already_loaded(soname(major));
          library && consider(library.path()))
        return true;
    }
    searched_.push_back("what this process has loaded");
    return false;
  }

  bool in_folders() {
    const std::string own = own_folder();
    std::vector<std::string> folders = hints_;
    folders.push_back(own + "/../../nvidia/cu13/lib");
    folders.push_back(own + "/../../nvidia/cuda_nvrtc/lib");
    if (const std::string conda = environment("CONDA_PREFIX"); !conda.empty())
      folders.push_back(conda + "/lib");
    for (const std::string& folder : folders)
      if (in_folder(folder)) return true;
    return false;
  }

  bool in_system() {
    for (int major : majors) {
      if (const auto library = DynamicLibrary::open(soname(major));
          library && consider(library.path()))
        return true;
      searched_.push_back(soname(major) + " as the dynamic linker finds it");
    }
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"})
      if (const std::string root = environment(variable);
          !root.empty() && in_folder(root + "/lib64"))
        return true;
    return in_folder("/usr/local/cuda/lib64");
  }

  const int cc_;
  const std::vector<std::string> hints_;
  int driver_major_ = 0;
  Found best_;
  std::vector<std::string> searched_;
};

struct State {
  std::mutex mutex;
  std::vector<std::string> hints;
  std::map<std::string, Nvrtc> known;   // by path
  std::map<bool, const Nvrtc*> chosen;  // by whether the target is older than NVRTC 13
};

State& state() {
  static auto& state = *new State;
  return state;
}

}  // namespace

const Nvrtc& nvrtc_for(int cc) {
  State& s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  const auto choose = [&s](bool old, int target) -> const Nvrtc& {
    if (const auto known = s.chosen.find(old); known != s.chosen.end()) return *known->second;
    const Found found = Search(target, s.hints).run();
    const Nvrtc& nvrtc = s.known.try_emplace(found.path, found.path, found.identity).first->second;
    s.chosen[old] = &nvrtc;
    return nvrtc;
  };
  if (cc >= oldest_cc_of_13) return choose(false, cc);
  // An NVRTC that is loaded for an old target must not become the choice for the others.
  try {
    choose(false, oldest_cc_of_13);
  } catch (const CompileError&) {  // it will be said when it is asked for
  }
  return choose(true, cc);
}

NvrtcInfo nvrtc_info() {
  const Nvrtc& nvrtc = nvrtc_for(oldest_cc_of_13);
  return {nvrtc.path(), nvrtc.version(), nvrtc.archs()};
}

void add_nvrtc_folder(const std::string& folder) {
  State& s = state();
  std::lock_guard<std::mutex> lock(s.mutex);
  s.hints.push_back(folder);
}

}  // namespace fastgemm

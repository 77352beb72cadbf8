// Puts fake_libcuda.cpp in the place of the CUDA driver of a child process.
#pragma once

#include <dlfcn.h>

#include <string>

#include "support.hpp"

namespace fastgemm::test {

// The fake, built once; empty where there is no compiler for it.
inline const std::string& fake_libcuda(const std::string& options = {}) {
  static TempFolder folder;
  static std::map<std::string, std::string> built;
  const auto [it, is_new] = built.try_emplace(options);
  if (is_new) {
    const std::filesystem::path here = std::filesystem::path(__FILE__).parent_path();
    const std::string library = folder / ("libcuda" + std::to_string(built.size()) + ".so");
    std::string command = "c++ -std=c++17 -shared -fPIC -w -Wl,-soname,libcuda.so.1 " + options +
                          " -I'" + (here / "../../src").string() + "' -I'" +
                          (here / "../../include").string() + "' -o '" + library + "'";
    for (const char* source : {"fake_libcuda.cpp", "fake_libcuda_rest.cpp"})
      command += " '" + (here / source).string() + "'";
    if (std::system(command.c_str()) == 0) it->second = library;
  }
  return it->second;
}

// Loaded under the driver's soname, the fake is what the library finds when it opens libcuda.so.1.
class FakeDriver {
 public:
  explicit FakeDriver(const std::string& library)
      : handle_(::dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL)) {
    EXPECT_NE(handle_, nullptr) << ::dlerror();
  }

  template <typename T = int>
  T& operator[](const char* name) const {
    return *static_cast<T*>(::dlsym(handle_, name));
  }

 private:
  void* handle_;
};

}  // namespace fastgemm::test

// dlopen with its errors as text.
#pragma once

#include <dlfcn.h>
#include <link.h>

#include <string>

namespace fastgemm {

// A library is never closed again: code of it may still run in other threads, and at exit.
class DynamicLibrary {
 public:
  DynamicLibrary() = default;

  // Empty on failure; `error` then says why.
  static DynamicLibrary open(const std::string& name, std::string* error = nullptr) {
    DynamicLibrary library(::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL));
    if (!library && error) *error = last_error();
    return library;
  }

  // Only where someone in this process has loaded it already.
  static DynamicLibrary already_loaded(const std::string& soname) {
    return DynamicLibrary(::dlopen(soname.c_str(), RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD));
  }

  explicit operator bool() const { return handle_ != nullptr; }

  // Sets `entry` to the symbol; false (and nullptr) when the library has none of that name.
  template <typename Function>
  bool find(const char* symbol, Function*& entry) const {
    entry = reinterpret_cast<Function*>(::dlsym(handle_, symbol));
    return entry != nullptr;
  }

  std::string path() const {
    link_map* map = nullptr;
    return handle_ && ::dlinfo(handle_, RTLD_DI_LINKMAP, &map) == 0 && map->l_name ? map->l_name
                                                                                   : "";
  }

 private:
  explicit DynamicLibrary(void* handle) : handle_(handle) {}

  static std::string last_error() {
    const char* text = ::dlerror();
    return text ? text : "unknown error of dlopen";
  }

  void* handle_ = nullptr;
};

}  // namespace fastgemm

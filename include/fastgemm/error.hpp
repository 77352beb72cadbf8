// fastgemm::Error and its kinds: what went wrong, and whose fault it is.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

#include "fastgemm/export.hpp"

namespace fastgemm {

// The base of everything that fastgemm throws on purpose.
class FASTGEMM_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// The caller passed shapes, strides, a configuration ... that cannot be computed (Python:
// ValueError).
class FASTGEMM_API InvalidValue : public Error {
 public:
  using Error::Error;
};

// The caller passed a dtype or a kind of object that is not supported (Python: TypeError).
class FASTGEMM_API InvalidType : public Error {
 public:
  using Error::Error;
};

// NVRTC is missing, or refused a source (Python: fastgemm.CompileError). `log` is NVRTC's own log
// and `source_path` the file in which the refused source was kept; both may be empty.
class FASTGEMM_API CompileError : public Error {
 public:
  explicit CompileError(const std::string& what, std::string log = {}, std::string source_path = {})
      : Error(what), log(std::move(log)), source_path(std::move(source_path)) {}
  std::string log;
  std::string source_path;
};

// The driver is missing or too old, there is no usable GPU, or a driver call failed (Python:
// fastgemm.DeviceError). `code` is the CUresult, 0 where there is none.
class FASTGEMM_API DeviceError : public Error {
 public:
  explicit DeviceError(const std::string& what, int code = 0) : Error(what), code(code) {}
  int code;
};

// The emulator caught a kernel at something that a GPU would hide: an access out of bounds, a race,
// a deadlock (Python: fastgemm.EmulatorError). what() has all of it in words.
class FASTGEMM_API EmulatorError : public Error {
 public:
  struct Place {
    std::string kind;  // "race", "out of bounds", "deadlock" ...
    std::string kernel, instruction, address;
    long long cta = -1;
    int thread = -1;  // of the CTA
  };
  EmulatorError(const std::string& what, Place place) : Error(what), place(std::move(place)) {}
  Place place;
};

// A kernel that is not there yet was needed where none may be made: while a stream is captured into
// a CUDA graph, or with set_strict(true) (Python: fastgemm.ColdCallError). Preparing the product
// beforehand (PreparedGemm, fastgemm.prepare) is the way out.
class FASTGEMM_API ColdCallError : public Error {
 public:
  using Error::Error;
};

}  // namespace fastgemm

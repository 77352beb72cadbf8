// NVRTC, CUDA's run-time compiler: found, opened when something has to be compiled, and called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cuda_declarations.hpp"
#include "device_headers.hpp"

namespace fastgemm {

// One libnvrtc. Opening it costs milliseconds, so that what a hit in the disk cache needs is known
// without.
class Nvrtc {
 public:
  enum class Output { cubin, ptx };
  struct Result {
    std::vector<char> code;
    std::string log;
  };

  Nvrtc(std::string path, std::string identity);
  ~Nvrtc();

  const std::string& path() const { return path_; }
  const std::string& identity() const {
    return identity_;
  }  // changes whenever the library's code does

  // These open the library. Throw CompileError.
  const std::string& version() const;     // "13.0"
  const std::vector<int>& archs() const;  // compute capabilities, ascending
  Result compile(const std::string& name, const std::string& source, const HeaderSet& headers,
                 const std::vector<std::string>& options, Output output) const;

 private:
  struct Opened;
  const Opened& opened() const;

  const std::string path_, identity_;
  mutable std::unique_ptr<const Opened> opened_;
};

// The NVRTC for a compute capability: the first that suits it and the driver, in the order of
// FASTGEMM_NVRTC, what this process has loaded, add_nvrtc_folder(), the wheels beside this library,
// the system. Throws CompileError with the places that were searched.
const Nvrtc& nvrtc_for(int cc);

}  // namespace fastgemm

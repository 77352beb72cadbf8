// Writes the C++ sources of the kernels that are compiled into the package, so that the emulator
// runs the usual calls on a machine with no compiler. Usage: write_sources FOLDER COUNT
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "emulator/host_kernel.hpp"
#include "file_io.hpp"
#include "planner.hpp"

namespace {

using namespace fastgemm;

struct Usual {
  const char* arch;
  std::int64_t size;  // m = n = k
  DType dtype;
  const char* layout;
};

// What NumPy products and the demo get. The number of lines is CMakeLists.txt's too.
const std::vector<Usual> usual = {
    {"sm_80", 256, DType::f16, "nn"},  {"sm_80", 256, DType::f16, "nt"},
    {"sm_80", 256, DType::bf16, "nn"}, {"sm_80", 1024, DType::f16, "nn"},
    {"sm_90", 256, DType::f16, "nt"},  {"sm_90", 512, DType::f16, "nt"},
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 3 || std::atoi(arguments[2]) != static_cast<int>(usual.size())) {
    std::fprintf(stderr, "write_sources: expected FOLDER %zu\n", usual.size());
    return 2;
  }
  for (std::size_t i = 0; i < usual.size(); ++i) {
    const Usual& u = usual[i];
    const GemmProblem problem = packed_problem(u.size, u.size, u.size, u.dtype, u.layout);
    const std::string source = emulated::host_source(plan(problem, hardware(u.arch)).kernel);
    const std::string file = std::string(arguments[1]) + "/emulated_" + std::to_string(i) + ".cpp";
    const std::string failure = write_file_atomically(file, source);
    if (!failure.empty()) {
      std::fprintf(stderr, "write_sources: %s\n", failure.c_str());
      return 1;
    }
  }
  return 0;
}

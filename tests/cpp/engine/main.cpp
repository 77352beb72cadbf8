// A C++ engine: plans and compiles for two architectures on any machine, multiplies where there is
// a GPU.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fastgemm/gemm.hpp>
#include <vector>

namespace fg = fastgemm;

namespace {

// bfloat16 is the upper half of a float; exact for the small integers used here.
std::uint16_t to_bf16(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<std::uint16_t>(bits >> 16);
}

std::vector<std::uint16_t> small_integers(std::int64_t count, int modulus) {
  std::vector<std::uint16_t> values(count);
  for (std::int64_t i = 0; i < count; ++i) {
    values[i] = to_bf16(static_cast<float>(i % modulus - modulus / 2));
  }
  return values;
}

bool compiles_for(const char* arch) {
  const fg::GemmProblem problem =
      fg::packed_problem(4096, 4096, 4096, fg::DType::bf16, "nt", 1, fg::DType::bf16);
  const fg::Plan plan = fg::plan(problem, fg::hardware(arch));
  const auto kernel = fg::compile(plan);
  std::printf("%s: %s, %d registers, %d bytes spilled\n", kernel->target.c_str(),
              plan.str().c_str(), kernel->registers, kernel->spill_bytes);
  return kernel->spill_bytes == 0 && !kernel->cubin.empty();
}

bool multiplies() {
  const std::int64_t m = 130, n = 70, k = 51;
  auto a = small_integers(m * k, 5);
  auto b = small_integers(n * k, 7);
  std::vector<float> d(m * n, -1.0f);

  fg::GemmProblem problem = fg::packed_problem(m, n, k, fg::DType::bf16, "nt", 1, fg::DType::f32);
  problem.a.data = a.data();
  problem.b.data = b.data();
  problem.d.data = d.data();
  fg::gemm_on_host_memory(problem);

  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t col = 0; col < n; ++col) {
      float sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum +=
            static_cast<float>((row * k + i) % 5 - 2) * static_cast<float>((col * k + i) % 7 - 3);
      }
      if (d[row * n + col] != sum) return false;
    }
  }
  return true;
}

}  // namespace

int main() {
  try {
    if (!compiles_for("sm_80") || !compiles_for("sm_90")) return 1;
    if (fg::devices().empty()) {
      std::printf("no GPU (%s)\n", fg::driver_info().reason.c_str());
      return 0;
    }
    const bool right = multiplies();
    std::printf("product %s\n", right ? "right" : "wrong");
    return right ? 0 : 1;
  } catch (const fg::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}

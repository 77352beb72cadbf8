// Generated source: short, complete, and one name for one source.
#include <cctype>
#include <map>
#include <unordered_set>

#include "codegen.hpp"
#include "fastgemm/kernel.hpp"
#include "planner.hpp"
#include "plans.hpp"

namespace fastgemm {
namespace {

// Everything the planner considers for a mix of products, and each with one knob turned.
const std::unordered_set<KernelConfig, KernelConfigHash>& kernels() {
  static const auto all = [] {
    std::unordered_set<KernelConfig, KernelConfigHash> found;
    Dice dice(8);
    const auto add = [&](const KernelConfig& k, const HardwareSpec& hw) {
      if (check(k, hw).empty()) found.insert(k);
    };
    for (int round = 0; round < 400; ++round) {
      const HardwareSpec hw = dice.pick(targets());
      const GemmProblem p = any_problem(dice, dice.pick(dtypes_of(hw)), dice.extent(3000),
                                        dice.extent(3000), dice.extent(3000));
      for (const Candidate& c : plan(p, hw).considered) {
        KernelConfig k = c.kernel;
        add(k, hw);
        k.swizzle = false;
        add(k, hw);
        k.swizzle_bytes = 16;
        add(k, hw);
        k = c.kernel, k.swizzle_bytes = dice.one_in(2) ? 64 : 32;
        add(k, hw);
        k = c.kernel, k.raster_group = 0;
        add(k, hw);
        k = c.kernel, k.num_stages = 1;
        add(k, hw);
        k = c.kernel, k.tma_stores = k.staged_stores = false;
        add(k, hw);
        k = c.kernel, k.multicast = false;
        add(k, hw);
        k = c.kernel, k.dependent_launch = false;
        add(k, hw);
        k = c.kernel, k.swap_ab = false;
        add(k, hw);
        k = c.kernel, k.repack_a = !k.repack_a, k.repack_b = dice.one_in(2);
        add(k, hw);
        k = c.kernel, k.shift_a = !k.shift_a, k.shift_b = dice.one_in(2);
        add(k, hw);
      }
    }
    return found;
  }();
  return all;
}

std::map<std::string, std::string> constants_of(const std::string& source) {
  std::map<std::string, std::string> constants;
  const std::string mark = "static constexpr ";
  for (std::size_t at = 0; (at = source.find(mark, at)) != std::string::npos;) {
    at = source.find(' ', at + mark.size()) + 1;
    const std::size_t equals = source.find(" = ", at), end = source.find(';', at);
    constants.emplace(source.substr(at, equals - at), source.substr(equals + 3, end - equals - 3));
    at = end;
  }
  return constants;
}

std::string text(int i) { return std::to_string(i); }
std::string text(bool b) { return b ? "true" : "false"; }
std::string text(Major m) { return m == Major::k ? "Major::K" : "Major::MN"; }
std::string text(DType t) {
  return t == DType::f16 ? "Float16" : t == DType::bf16 ? "Bfloat16" : "Float32";
}

TEST(Codegen, OneNameForOneSourceAndOneSourceForOneName) {
  std::map<std::string, std::string> name_of, source_of;
  ASSERT_GT(kernels().size(), 5000u);
  for (const KernelConfig& k : kernels()) {
    const std::string name = kernel_name(k), source = kernel_source(k);
    EXPECT_EQ(name_of.emplace(source, name).first->second, name);
    EXPECT_EQ(source_of.emplace(name, source).first->second, source) << name;
    if (HasFailure()) return;
  }
}

// The number of splits is a run-time argument; everything else is compiled in.
TEST(Codegen, KernelsThatDifferHaveDifferentSources) {
  std::map<std::string, KernelConfig> kernel_of;
  for (const KernelConfig& k : kernels()) {
    KernelConfig same = kernel_of.emplace(kernel_source(k), k).first->second;
    if (k.split_k > 1 && same.split_k > 1) same.split_k = k.split_k;
    EXPECT_EQ(same, k) << same.str() << " and " << k.str();
    if (HasFailure()) return;
  }
}

TEST(Codegen, NamesAreIdentifiersThatProfilersCanShow) {
  for (const KernelConfig& k : kernels()) {
    const std::string name = kernel_name(k);
    EXPECT_EQ(name.rfind(std::string("fastgemm_") + fastgemm::name(k.family) + "_", 0), 0u);
    EXPECT_LT(name.size(), 160u) << name;
    for (char c : name)
      EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(c)) || c == '_') << name;
  }
}

TEST(Codegen, SourcesAreShort) {
  std::size_t most = 0;
  for (const KernelConfig& k : kernels()) {
    const std::string source = kernel_source(k);
    auto lines = static_cast<std::size_t>(std::count(source.begin(), source.end(), '\n'));
    if (k.repack_a || k.repack_b) lines -= 5;
    if (k.split_k > 1) lines -= 12;
    most = std::max(most, lines);
  }
  std::printf("generated lines: %zu at most, without repacking and split K\n", most);
  EXPECT_LE(most, 44u);
}

TEST(Codegen, EveryConstantIsInTheSource) {
  for (const KernelConfig& k : kernels()) {
    const std::string source = kernel_source(k);
    const bool split = k.split_k > 1, sm90 = k.family == Family::sm90;
    const bool gemv = k.family == Family::gemv;
    std::map<std::string, std::string> wanted = {
        {"FAMILY", gemv ? "0" : std::string(name(k.family)).substr(2)},
        {"A_MAJOR", text(k.a_major)},
        {"B_MAJOR", text(k.b_major)},
        {"BLOCK_M", text(k.block_m)},
        {"BLOCK_N", text(k.block_n)},
        {"BLOCK_K", text(k.block_k)},
        {"WARP_M", text(k.warp_m)},
        {"WARP_N", text(k.warp_n)},
        {"NUM_STAGES", text(k.num_stages)},
        {"SWIZZLE", text(k.swizzle)},
        {"RASTER_GROUP", text(k.raster_group)},
        {"STAGED_STORES", text(k.staged_stores)},
        {"SPLIT_K", text(split)},
        {"SWAP_AB", text(k.swap_ab)},
        {"DEPENDENT_LAUNCH", text(k.dependent_launch)},
        {"A_COPY_BYTES", text(k.a_copy_bytes)},
        {"B_COPY_BYTES", text(k.b_copy_bytes)},
    };
    if (!split) wanted.insert({{"D_VECTOR", text(k.d_vector)}, {"HAS_C", text(k.has_c)}});
    if (!gemv)
      wanted.insert(
          {{"SHIFT_A", text(k.shifts_rows_of_a())}, {"SHIFT_B", text(k.shifts_rows_of_b())}});
    if (sm90)
      wanted.insert({{"CLUSTER_M", text(k.cluster_m)},
                     {"CLUSTER_N", text(k.cluster_n)},
                     {"CLUSTER_K", text(k.cluster_k)},
                     {"MULTICAST", text(k.multicast)},
                     {"SWIZZLE_BYTES", text(k.swizzle_bytes)},
                     {"TMA_STORES", text(k.tma_stores)},
                     {"PREFETCH", text(k.prefetch)},
                     {"PING_PONG", text(k.ping_pong)},
                     {"PERSISTENT", text(k.persistent)}});
    std::map<std::string, std::string> got = constants_of(source);
    for (const auto& [constant, value] : wanted)
      EXPECT_EQ(got[constant], value) << constant << " of " << k.str();
    expect_words(source,
                 {"using Input = " + text(k.in) + ";", "using Output = " + text(k.out) + ";",
                  "SHARED_BYTES<Config> == " + text(shared_bytes(k)),
                  "__launch_bounds__(" + text(k.threads()), kernel_name(k) + "(",
                  "extern \"C\" __global__"});
    EXPECT_EQ(source.find("__cluster_dims__") != std::string::npos, k.cluster() > 1);
    EXPECT_EQ(source.find(reduce_kernel_name(k) + "(") != std::string::npos, split);
    EXPECT_EQ(source.find(repack_kernel_name(k) + "(") != std::string::npos,
              k.repack_a || k.repack_b);
    if (HasFailure()) return;
  }
}

// Partial sums are float32 and C is added once, by the kernel that adds them up.
TEST(Codegen, SplitsLeaveTheirSumsToTheSecondKernel) {
  GemmConfig config;
  config.split_k = 4;
  GemmProblem p = packed_problem(64, 64, 4096, DType::bf16, "nt", 1, {}, true);
  const KernelConfig k = plan(p, hardware("A100"), config).kernel;
  ASSERT_EQ(k.split_k, 4);
  const std::string source = kernel_source(k);
  const std::size_t second = source.find("struct Finish");
  ASSERT_NE(second, std::string::npos);
  expect_words(source.substr(0, second), {"Output = Float32", "HAS_C = false", "D_VECTOR = 4"});
  expect_words(source.substr(second), {"Output = Bfloat16", "HAS_C = true", "D_VECTOR = 8"});
}

TEST(Codegen, PlansOfEqualKernelsHaveEqualSources) {
  const HardwareSpec hw = hardware("A100");
  const Plan one = plan(packed_problem(8192, 8192, 8192, DType::f16), hw);
  const Plan two = plan(packed_problem(999, 512, 4096, DType::f16), hw, resolved(one.kernel));
  ASSERT_EQ(one.kernel, two.kernel);
  EXPECT_EQ(generate_source(one), generate_source(two));
  EXPECT_EQ(generate_source(one), kernel_source(one.kernel));
}

}  // namespace
}  // namespace fastgemm

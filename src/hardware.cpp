// The hardware parameter table (the only place for such numbers) and the look-ups in it.
#include "fastgemm/hardware.hpp"

#include <algorithm>
#include <cctype>

#include "fastgemm/error.hpp"
#include "hardware_internal.hpp"

namespace fastgemm {
namespace {

constexpr int KiB = 1024;
constexpr bool yes = true, no = false;

// clang-format off
// Sources, by column:
//   smem/SM .. CTAs   CUDA programming guide, "Technical Specifications per Compute Capability"; the
//                     same numbers stand in the toolkit's cuda_occupancy.h and CCCL's arch_traits.h
//   reserved          CCCL's reserved_shared_memory_per_block
//   flop/clk          dense fp16/bf16 products with fp32 sums at the chip's full rate: whitepapers of
//                     V100, Turing, A100, GA102, Ada, H100, RTX Blackwell; briefs of Orin and Thor;
//                     sm_100 and sm_103 follow from the datasheets of the cards below
//   GHz               of the first card of that architecture below
//   instructions      PTX ISA, target notes of mma, ldmatrix, cp.async and wgmma
//   mma.sync          sm_90: measured on an H200; sm_100 to sm_110: assumed to keep sm_90's rate per SM
const ArchSpec kArchs[] = {
    // cc generation   smem/SM    smem/CTA   reserved registers reg/thr warps CTAs flop/clk  GHz    bf16 ldmatrix cp.async m16n8k16 tma+wgmma mma.sync
    { 70, "Volta",      96 * KiB,  96 * KiB, 0,       65536,    255,    64,   32,  1024,     1.530, no,  no,      no,      no,      no,       1},
    { 75, "Turing",     64 * KiB,  64 * KiB, 0,       65536,    255,    32,   16,  1024,     1.590, no,  yes,     no,      no,      no,       1},
    { 80, "Ampere",    164 * KiB, 163 * KiB, 1 * KiB, 65536,    255,    64,   32,  2048,     1.410, yes, yes,     yes,     yes,     no,       1},
    { 86, "Ampere",    100 * KiB,  99 * KiB, 1 * KiB, 65536,    255,    48,   16,  1024,     1.695, yes, yes,     yes,     yes,     no,       1},
    { 87, "Ampere",    164 * KiB, 163 * KiB, 1 * KiB, 65536,    255,    48,   16,  2048,     1.300, yes, yes,     yes,     yes,     no,       1},
    { 89, "Ada",       100 * KiB,  99 * KiB, 1 * KiB, 65536,    255,    48,   24,  1024,     2.520, yes, yes,     yes,     yes,     no,       1},
    { 90, "Hopper",    228 * KiB, 227 * KiB, 1 * KiB, 65536,    255,    64,   32,  4096,     1.830, yes, yes,     yes,     yes,     yes,      0.62},
    {100, "Blackwell", 228 * KiB, 227 * KiB, 1 * KiB, 65536,    255,    64,   32,  8192,     1.850, yes, yes,     yes,     yes,     no,       0.31},
    {103, "Blackwell", 228 * KiB, 227 * KiB, 1 * KiB, 65536,    255,    64,   32,  8192,     1.850, yes, yes,     yes,     yes,     no,       0.31},
    {110, "Blackwell", 228 * KiB, 227 * KiB, 1 * KiB, 65536,    255,    48,   24,  8192,     1.575, yes, yes,     yes,     yes,     no,       0.31},
    {120, "Blackwell", 100 * KiB,  99 * KiB, 1 * KiB, 65536,    255,    48,   24,  1024,     2.407, yes, yes,     yes,     yes,     no,       1},
    {121, "Blackwell", 100 * KiB,  99 * KiB, 1 * KiB, 65536,    255,    48,   24,  1024,     2.550, yes, yes,     yes,     yes,     no,       1},
};

struct Card {
  int cc;
  const char* name;     // what the driver calls it
  const char* aliases;  // sets of words that name it, separated by '|'; the first is what messages show
  int sms;
  double clock_ghz;
  int l2_kib;
  double dram_gbps;
  int flops_per_clock;  // 0: that of its architecture
};

// NVIDIA's datasheets and whitepapers; L2 as the driver reports it. GHz is the boost clock, but on the
// H and B parts the lower clock that their Tensor Core figures were computed with: SMs * flop/clk * GHz
// gives the datasheet's dense fp16 TFLOP/s (last column). GeForce cards accumulate in fp32 at half of
// the chip's rate (whitepapers of GA102, Ada, RTX Blackwell), an H20 does everything at a quarter.
// The first card of an architecture stands for it where no card is named.
const Card kCards[] = {
    // cc name                                       aliases                                               SMs  GHz    L2 KiB  GB/s  flop/clk
    { 70, "Tesla V100-SXM2-16GB",                    "V100|V100 SXM2|V100 SXM3",                            80, 1.530,   6144,  900, 0},     // 125 TFLOP/s
    { 70, "Tesla V100-PCIE-16GB",                    "V100 PCIe",                                           80, 1.380,   6144,  900, 0},     // 112
    { 75, "Tesla T4",                                "T4",                                                  40, 1.590,   4096,  320, 0},     // 65
    { 80, "NVIDIA A100-SXM4-80GB",                   "A100|A100 80GB|A100 SXM|A100 SXM4|A100 SXM4 80GB",   108, 1.410,  40960, 2039, 0},     // 312
    { 80, "NVIDIA A100 80GB PCIe",                   "A100 PCIe|A100 80GB PCIe",                           108, 1.410,  40960, 1935, 0},     // 312
    { 80, "NVIDIA A100-SXM4-40GB",                   "A100 40GB|A100 SXM4 40GB|A100 PCIe 40GB",            108, 1.410,  40960, 1555, 0},     // 312
    { 86, "NVIDIA A10",                              "A10",                                                 72, 1.695,   6144,  600, 0},     // 125
    { 86, "NVIDIA GeForce RTX 3090",                 "RTX 3090|3090",                                       82, 1.695,   6144,  936, 512},   // 71
    { 87, "Jetson AGX Orin 64GB",                    "AGX Orin|Jetson AGX Orin",                            16, 1.300,   4096,  205, 0},     // 42.5, half of its 85 int8
    { 89, "NVIDIA L40S",                             "L40S",                                               142, 2.520,  98304,  864, 0},     // 362
    { 89, "NVIDIA L4",                               "L4",                                                  58, 2.040,  49152,  300, 0},     // 121
    { 89, "NVIDIA GeForce RTX 4090",                 "RTX 4090|4090",                                      128, 2.520,  73728, 1008, 512},   // 165
    { 90, "NVIDIA H100 80GB HBM3",                   "H100|H100 SXM|H100 SXM5|H100 HBM3",                  132, 1.830,  51200, 3350, 0},     // 989
    { 90, "NVIDIA H100 PCIe",                        "H100 PCIe|H100 HBM2e",                               114, 1.620,  51200, 2039, 0},     // 756
    { 90, "NVIDIA H100 NVL",                         "H100 NVL",                                           132, 1.545,  61440, 3900, 0},     // 835
    { 90, "NVIDIA H200",                             "H200|H200 SXM|H200 HBM3e",                           132, 1.830,  61440, 4800, 0},     // 989
    { 90, "NVIDIA H200 NVL",                         "H200 NVL",                                           132, 1.545,  61440, 4800, 0},     // 835
    { 90, "NVIDIA H20",                              "H20",                                                 78, 1.850,  61440, 4000, 1024},  // 148
    {100, "NVIDIA B200",                             "B200",                                               148, 1.850, 129536, 7700, 0},     // 2250
    {103, "NVIDIA B300 SXM6 AC",                     "B300|B300 SXM6|B300 SXM6 AC",                        148, 1.850, 129536, 8000, 0},     // 2250
    {110, "NVIDIA Thor",                             "Thor|AGX Thor|Jetson AGX Thor|T5000",                 20, 1.575,  32768,  273, 0},     // 258, an eighth of its 2070 sparse fp4
    {120, "NVIDIA GeForce RTX 5090",                 "RTX 5090|5090",                                      170, 2.407,  98304, 1792, 512},   // 209.5
    {120, "NVIDIA RTX PRO 6000 Blackwell",           "RTX PRO 6000|RTX PRO 6000 Blackwell|RTX PRO 6000 Blackwell Server Edition|RTX PRO 6000 Blackwell Workstation Edition",
                                                                                                           188, 2.617, 131072, 1792, 0},     // 504
    {121, "NVIDIA GB10",                             "GB10|DGX Spark",                                      48, 2.550,  24576,  273, 0},     // 125, an eighth of its 1000 sparse fp4
};
// clang-format on

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> out(1);
  for (char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c))) {
      const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
      if (digit && out.back() == "rtx") out.emplace_back();  // "RTX4090" is "RTX 4090"
      out.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

bool says_nothing(const std::string& word) {
  if (word == "nvidia" || word == "tesla" || word == "geforce" || word == "gpu") return true;
  return word.size() > 2 && word.substr(word.size() - 2) == "gb" &&
         std::all_of(word.begin(), word.end() - 2, [](char c) { return c >= '0' && c <= '9'; });
}

// How many words of `name` the alias takes; 0 when a word is missing or one is left that means
// something.
std::size_t words_matched(std::vector<std::string> name, std::string_view alias) {
  const std::vector<std::string> wanted = words(alias);
  for (const std::string& word : wanted) {
    const auto found = std::find(name.begin(), name.end(), word);
    if (found == name.end()) return 0;
    name.erase(found);
  }
  return std::all_of(name.begin(), name.end(), says_nothing) ? wanted.size() : 0;
}

std::string_view next_alias(std::string_view& aliases) {
  const std::size_t end = std::min(aliases.find('|'), aliases.size());
  const std::string_view alias = aliases.substr(0, end);
  aliases.remove_prefix(std::min(end + 1, aliases.size()));
  return alias;
}

// 90 for "sm_90", "sm_90a", "compute_90", "90", "9.0"; 0 for everything else.
int parse_arch(std::string_view text) {
  std::string s;
  for (char c : text) s += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const bool named = s.rfind("sm", 0) == 0 || s.rfind("compute", 0) == 0;
  if (named) s.erase(0, s[0] == 's' ? 2 : 7);
  if (named && !s.empty() && s[0] == '_') s.erase(0, 1);
  if (s.size() > 1 && (s.back() == 'a' || s.back() == 'f')) s.pop_back();
  const std::size_t dot = s.find('.');
  if (dot != std::string::npos && dot + 2 == s.size()) s.erase(dot, 1);
  const bool digits = std::all_of(s.begin(), s.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && (s.size() == 2 || s.size() == 3) ? std::stoi(s) : 0;
}

std::string known() {
  std::string text = "known are the architectures ";
  for (const ArchSpec& row : kArchs) text += arch_name(row.cc) + ", ";
  text += "and the cards ";
  for (const Card& card : kCards) {
    std::string_view aliases = card.aliases;
    text += std::string(&card == kCards ? "" : ", ") + std::string(next_alias(aliases));
  }
  return text;
}

const HardwareSpec& typical_card(int row_cc) {
  const std::vector<HardwareSpec>& cards = card_table();
  return *std::find_if(cards.begin(), cards.end(),
                       [&](const HardwareSpec& card) { return card.arch.cc == row_cc; });
}

// Whether this architecture's GeForce chips accumulate in fp32 at half rate.
bool geforce_is_half_rate(int cc) { return cc == 75 || cc == 86 || cc == 89 || cc == 120; }

// A chip whose Tensor Cores are throttled. mma.sync only suffers once the throttle is below its own
// limit.
void throttle(ArchSpec& arch, int flops_per_clock) {
  const double mma_sync_flops = arch.mma_sync_share * arch.mma_flops_per_clock;
  arch.mma_sync_share = std::min(1.0, mma_sync_flops / flops_per_clock);
  arch.mma_flops_per_clock = flops_per_clock;
}

}  // namespace

const std::vector<ArchSpec>& arch_table() {
  static const std::vector<ArchSpec> table(std::begin(kArchs), std::end(kArchs));
  return table;
}

const std::vector<HardwareSpec>& card_table() {
  static const std::vector<HardwareSpec> table = [] {
    std::vector<HardwareSpec> cards;
    for (const Card& row : kCards) {
      HardwareSpec card{
          arch_for(row.cc), row.name, row.sms, row.clock_ghz, std::int64_t{row.l2_kib} * KiB,
          row.dram_gbps};
      if (row.flops_per_clock != 0) throttle(card.arch, row.flops_per_clock);
      cards.push_back(std::move(card));
    }
    return cards;
  }();
  return table;
}

const ArchSpec& arch_for(int cc) {
  if (cc < kArchs[0].cc)
    throw InvalidValue(
        "compute capability " + std::to_string(cc / 10) + "." + std::to_string(cc % 10) + " (" +
        arch_name(cc) +
        ") has no Tensor Cores that fastgemm can use; it needs 7.0 or newer: " + known());
  const ArchSpec* relative = nullptr;
  const ArchSpec* newest_generic = nullptr;
  for (const ArchSpec& row : kArchs) {
    if (row.cc == cc) return row;
    if (row.cc < cc && row.cc / 10 == cc / 10) relative = &row;
    if (!row.tma_wgmma) newest_generic = &row;
  }
  // wgmma belongs to exactly one compute capability (the "a" in sm_90a), so no relative inherits
  // it.
  return relative != nullptr && !relative->tma_wgmma ? *relative : *newest_generic;
}

std::string arch_name(int cc) { return "sm_" + std::to_string(cc); }

const HardwareSpec* card_by_device_name(std::string_view device_name) {
  const std::vector<std::string> name = words(device_name);
  const HardwareSpec* best = nullptr;
  std::size_t best_words = 0;
  for (std::size_t i = 0; i < std::size(kCards); ++i) {
    for (std::string_view aliases = kCards[i].aliases; !aliases.empty();) {
      const std::size_t matched = words_matched(name, next_alias(aliases));
      if (matched <= best_words) continue;
      best_words = matched;
      best = &card_table()[i];
    }
  }
  return best;
}

ArchSpec arch_of_device(int cc, std::string_view device_name) {
  ArchSpec arch = arch_for(cc);
  const HardwareSpec* card = card_by_device_name(device_name);
  const std::vector<std::string> name = words(device_name);
  const bool geforce = std::find(name.begin(), name.end(), "geforce") != name.end();
  if (card != nullptr && card->arch.cc == arch.cc)
    arch = card->arch;
  else if (geforce && geforce_is_half_rate(arch.cc))
    throttle(arch, arch.mma_flops_per_clock / 2);
  arch.cc = cc;
  return arch;
}

HardwareSpec hardware(std::string_view arch_or_card) {
  if (const int cc = parse_arch(arch_or_card); cc != 0) {
    HardwareSpec spec = typical_card(arch_for(cc).cc);
    spec.name = arch_name(cc) + ", as " + spec.name;
    spec.arch.cc = cc;
    return spec;
  }
  if (const HardwareSpec* card = card_by_device_name(arch_or_card)) return *card;
  throw InvalidValue("unknown GPU '" + std::string(arch_or_card) + "': " + known() +
                     "; for another card give its architecture");
}

}  // namespace fastgemm

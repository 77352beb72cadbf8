// The hardware table against datasheets and the CUDA programming guide, and the look-ups in it.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "fastgemm/error.hpp"
#include "fastgemm/hardware.hpp"
#include "hardware_internal.hpp"

namespace fastgemm {
namespace {

double tflops(const HardwareSpec& card) {
  return card.sms * card.arch.mma_flops_per_clock * card.clock_ghz / 1000;
}

TEST(Hardware, PeakOfEveryCardIsItsDatasheets) {
  const std::map<std::string, double> dense_fp16_fp32_accumulation = {
      {"Tesla V100-SXM2-16GB", 125},
      {"Tesla V100-PCIE-16GB", 112},
      {"Tesla T4", 65},
      {"NVIDIA A100-SXM4-80GB", 312},
      {"NVIDIA A100 80GB PCIe", 312},
      {"NVIDIA A100-SXM4-40GB", 312},
      {"NVIDIA A10", 125},
      {"NVIDIA GeForce RTX 3090", 71},
      {"Jetson AGX Orin 64GB", 42.5},
      {"NVIDIA L40S", 362.05},
      {"NVIDIA L4", 121},
      {"NVIDIA GeForce RTX 4090", 165.2},
      {"NVIDIA H100 80GB HBM3", 989.4},
      {"NVIDIA H100 PCIe", 756.5},
      {"NVIDIA H100 NVL", 835.5},
      {"NVIDIA H200", 989.4},
      {"NVIDIA H200 NVL", 835.5},
      {"NVIDIA H20", 148},
      {"NVIDIA B200", 2250},
      {"NVIDIA B300 SXM6 AC", 2250},
      {"NVIDIA Thor", 2070 / 8.0},
      {"NVIDIA GeForce RTX 5090", 209.5},
      {"NVIDIA RTX PRO 6000 Blackwell", 503.8},
      {"NVIDIA GB10", 1000 / 8.0},
  };
  for (const HardwareSpec& card : card_table()) {
    ASSERT_EQ(dense_fp16_fp32_accumulation.count(card.name), 1u) << card.name;
    const double datasheet = dense_fp16_fp32_accumulation.at(card.name);
    EXPECT_NEAR(tflops(card), datasheet, 0.02 * datasheet) << card.name;
  }
  EXPECT_EQ(card_table().size(), dense_fp16_fp32_accumulation.size());
}

TEST(Hardware, RowsHoldTheLimitsOfTheProgrammingGuide) {
  struct Limits {
    int shared_kib, warps, ctas;
  };
  const std::map<int, Limits> guide = {
      {70, {96, 64, 32}},   {75, {64, 32, 16}},   {80, {164, 64, 32}},  {86, {100, 48, 16}},
      {87, {164, 48, 16}},  {89, {100, 48, 24}},  {90, {228, 64, 32}},  {100, {228, 64, 32}},
      {103, {228, 64, 32}}, {110, {228, 48, 24}}, {120, {100, 48, 24}}, {121, {100, 48, 24}},
  };
  ASSERT_EQ(arch_table().size(), guide.size());
  for (const ArchSpec& row : arch_table()) {
    ASSERT_EQ(guide.count(row.cc), 1u) << row.cc;
    const Limits& limits = guide.at(row.cc);
    EXPECT_EQ(row.shared_per_sm, limits.shared_kib * 1024) << row.cc;
    EXPECT_EQ(row.warps_per_sm, limits.warps) << row.cc;
    EXPECT_EQ(row.ctas_per_sm, limits.ctas) << row.cc;
    EXPECT_EQ(row.registers_per_sm, 65536) << row.cc;
    EXPECT_EQ(row.registers_per_thread, 255) << row.cc;
    EXPECT_EQ(row.shared_reserved, row.cc >= 80 ? 1024 : 0) << row.cc;
    EXPECT_EQ(row.shared_per_block, row.shared_per_sm - row.shared_reserved) << row.cc;
  }
}

TEST(Hardware, InstructionsAppearWithTheirArchitecture) {
  for (const ArchSpec& row : arch_table()) {
    EXPECT_EQ(row.ldmatrix, row.cc >= 75) << row.cc;
    EXPECT_EQ(row.bf16, row.cc >= 80) << row.cc;
    EXPECT_EQ(row.cp_async, row.cc >= 80) << row.cc;
    EXPECT_EQ(row.mma_m16n8k16, row.cc >= 80) << row.cc;
    EXPECT_EQ(row.tma_wgmma, row.cc == 90) << row.cc;
    EXPECT_GT(row.mma_sync_share, 0) << row.cc;
    EXPECT_LE(row.mma_sync_share, 1) << row.cc;
  }
}

TEST(Hardware, RowsAreSortedAndEachHasATypicalCard) {
  int before = 0;
  for (const ArchSpec& row : arch_table()) {
    EXPECT_LT(before, row.cc);
    before = row.cc;
    const HardwareSpec spec = hardware(arch_name(row.cc));
    EXPECT_EQ(spec.arch.cc, row.cc);
    EXPECT_EQ(spec.clock_ghz, row.clock_ghz) << row.cc;
    EXPECT_GT(spec.sms, 0);
    EXPECT_GT(spec.l2_bytes, 1 << 20);
    EXPECT_GT(spec.dram_gbps, 100);
    EXPECT_EQ(spec.device, -1);
    EXPECT_EQ(spec.name.rfind(arch_name(row.cc) + ", as ", 0), 0u) << spec.name;
  }
}

TEST(Hardware, OnlyGeForceAndExportCardsAreSlowerThanTheirRow) {
  for (const HardwareSpec& card : card_table()) {
    const int full = arch_for(card.arch.cc).mma_flops_per_clock;
    const bool geforce = card.name.find("GeForce") != std::string::npos;
    const int share = geforce ? 2 : card.name == "NVIDIA H20" ? 4 : 1;
    EXPECT_EQ(card.arch.mma_flops_per_clock * share, full) << card.name;
  }
}

TEST(Hardware, EverySpellingOfAnArchitecture) {
  for (const char* text : {"sm_90", "sm_90a", "SM_90A", "sm90", "90", "9.0", "90a", "compute_90"}) {
    EXPECT_EQ(hardware(text).arch.cc, 90) << text;
    EXPECT_EQ(hardware(text).sms, 132) << text;
  }
  EXPECT_EQ(hardware("10.3").arch.cc, 103);
  EXPECT_EQ(hardware("sm_100f").arch.cc, 100);
  EXPECT_EQ(hardware("12.1").arch.cc, 121);
  EXPECT_EQ(hardware("7.5").name, "sm_75, as Tesla T4");
}

TEST(Hardware, EverySpellingOfACard) {
  const std::map<std::string, std::string> spellings = {
      {"H100", "NVIDIA H100 80GB HBM3"},
      {"h100 sxm", "NVIDIA H100 80GB HBM3"},
      {"NVIDIA H100 PCIe", "NVIDIA H100 PCIe"},
      {"H100-PCIE-80GB", "NVIDIA H100 PCIe"},
      {"NVIDIA H100 NVL", "NVIDIA H100 NVL"},
      {"h200", "NVIDIA H200"},
      {"NVIDIA H200 141GB HBM3e", "NVIDIA H200"},
      {"NVIDIA H200 NVL", "NVIDIA H200 NVL"},
      {"NVIDIA H20", "NVIDIA H20"},
      {"RTX 4090", "NVIDIA GeForce RTX 4090"},
      {"rtx4090", "NVIDIA GeForce RTX 4090"},
      {"5090", "NVIDIA GeForce RTX 5090"},
      {"GeForce RTX 3090", "NVIDIA GeForce RTX 3090"},
      {"A100", "NVIDIA A100-SXM4-80GB"},
      {"A100-PCIE-40GB", "NVIDIA A100-SXM4-40GB"},
      {"a100 40gb", "NVIDIA A100-SXM4-40GB"},
      {"A100 PCIe", "NVIDIA A100 80GB PCIe"},
      {"Tesla V100-SXM2-32GB", "Tesla V100-SXM2-16GB"},
      {"Tesla V100-PCIE-32GB", "Tesla V100-PCIE-16GB"},
      {"T4", "Tesla T4"},
      {"l4", "NVIDIA L4"},
      {"NVIDIA L40S", "NVIDIA L40S"},
      {"B200", "NVIDIA B200"},
      {"NVIDIA RTX PRO 6000 Blackwell Server Edition", "NVIDIA RTX PRO 6000 Blackwell"},
      {"Thor", "NVIDIA Thor"},
      {"gb10", "NVIDIA GB10"},
  };
  for (const auto& [text, name] : spellings) EXPECT_EQ(hardware(text).name, name) << text;
  for (const HardwareSpec& card : card_table()) {
    EXPECT_EQ(hardware(card.name).name, card.name);
    ASSERT_NE(card_by_device_name(card.name), nullptr) << card.name;
    EXPECT_EQ(card_by_device_name(card.name)->name, card.name);
  }
}

TEST(Hardware, RelativesOfACardAreNotThatCard) {
  for (const char* name :
       {"NVIDIA GH200 480GB", "NVIDIA GB200", "NVIDIA GeForce RTX 4090 Laptop GPU",
        "NVIDIA GeForce RTX 4090 D", "NVIDIA GeForce RTX 3090 Ti", "NVIDIA A10G", "GRID A10-24Q",
        "NVIDIA A100-SXM4-40GB MIG 1g.5gb", "NVIDIA H20-3e", "NVIDIA H800", "NVIDIA L40",
        "Tesla V100S-PCIE-32GB", "Orin", "NVIDIA", "", "GPU", "80GB"})
    EXPECT_EQ(card_by_device_name(name), nullptr) << name;
}

TEST(Hardware, UnknownNamesAreRefusedWithWhatIsKnown) {
  for (const char* text :
       {"", "H900", "sm_", "sm_9", "sm_9x", "9.", ".9", "1.0.0", "sm_1000", "a", "f", "-90"}) {
    try {
      hardware(text);
      ADD_FAILURE() << text;
    } catch (const InvalidValue& e) {
      const std::string what = e.what();
      EXPECT_NE(what.find(std::string("'") + text + "'"), std::string::npos) << what;
      for (const char* needed : {"sm_70", "sm_121", "H100", "RTX 4090", "GB10"})
        EXPECT_NE(what.find(needed), std::string::npos) << what;
    }
  }
}

TEST(Hardware, ComputeCapabilitiesWithNoRowUseARelative) {
  EXPECT_EQ(arch_for(72).cc, 70);
  EXPECT_EQ(arch_for(82).cc, 80);
  EXPECT_EQ(arch_for(88).cc, 87);
  EXPECT_EQ(arch_for(101).cc, 100);
  EXPECT_EQ(arch_for(111).cc, 110);
  EXPECT_EQ(arch_for(122).cc, 121);
  EXPECT_EQ(hardware("sm_88").arch.cc, 88);
}

TEST(Hardware, NewerGpusGetNoInstructionsOfOneArchitecture) {
  for (const int cc : {91, 95, 122, 130, 131, 200, 999}) {
    const ArchSpec& row = arch_for(cc);
    EXPECT_FALSE(row.tma_wgmma) << cc;
    EXPECT_TRUE(row.bf16 && row.ldmatrix && row.cp_async && row.mma_m16n8k16) << cc;
  }
  EXPECT_EQ(arch_for(130).cc, 121);
  EXPECT_EQ(hardware("13.0").arch.cc, 130);
}

TEST(Hardware, GpusBeforeVoltaAreRefused) {
  for (const int cc : {-1, 0, 35, 61, 69}) EXPECT_THROW(arch_for(cc), InvalidValue) << cc;
  EXPECT_THROW(hardware("sm_61"), InvalidValue);
  try {
    arch_for(61);
  } catch (const InvalidValue& e) {
    EXPECT_NE(std::string(e.what()).find("6.1"), std::string::npos) << e.what();
  }
}

TEST(Hardware, LiveDevicesHaveTheRateOfTheirCardOrBrand) {
  EXPECT_EQ(arch_of_device(90, "NVIDIA H200").mma_flops_per_clock, 4096);
  EXPECT_EQ(arch_of_device(90, "NVIDIA H20").mma_flops_per_clock, 1024);
  EXPECT_EQ(arch_of_device(86, "NVIDIA GeForce RTX 3060").mma_flops_per_clock, 512);
  EXPECT_EQ(arch_of_device(86, "NVIDIA RTX A6000").mma_flops_per_clock, 1024);
  EXPECT_EQ(arch_of_device(75, "NVIDIA GeForce RTX 2080 Ti").mma_flops_per_clock, 512);
  EXPECT_EQ(arch_of_device(75, "NVIDIA TITAN RTX").mma_flops_per_clock, 1024);
  EXPECT_EQ(arch_of_device(120, "NVIDIA GeForce RTX 5090").mma_flops_per_clock, 512);
  EXPECT_EQ(arch_of_device(90, "NVIDIA A10").mma_flops_per_clock, 4096);
  EXPECT_EQ(arch_of_device(90, "NVIDIA H200").mma_sync_share, arch_for(90).mma_sync_share);
  EXPECT_EQ(arch_of_device(90, "NVIDIA H20").mma_sync_share, 1);
  EXPECT_EQ(arch_of_device(86, "NVIDIA GeForce RTX 3060").mma_sync_share, 1);
  EXPECT_EQ(arch_of_device(88, "something").cc, 88);
  EXPECT_EQ(arch_of_device(130, "NVIDIA Something").cc, 130);
}

}  // namespace
}  // namespace fastgemm

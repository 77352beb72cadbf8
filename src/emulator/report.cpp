// The report as a table.
#include <algorithm>
#include <cstdio>

#include "fastgemm/emulate.hpp"

namespace fastgemm {
namespace {

std::string cell(std::int64_t value) { return value ? std::to_string(value) : "-"; }

std::string row(const std::string& name, const std::string (&cells)[6]) {
  char text[256];
  std::snprintf(text, sizeof text, "%-14s %12s %14s %12s %10s %14s %10s\n", name.c_str(),
                cells[0].c_str(), cells[1].c_str(), cells[2].c_str(), cells[3].c_str(),
                cells[4].c_str(), cells[5].c_str());
  return text;
}

}  // namespace

void EmulatorReport::add(const EmulatorReport& other) {
  if (kernels.empty()) {
    const double seconds_before = seconds;
    *this = other;
    seconds += seconds_before;
    return;
  }
  for (const std::string& kernel : other.kernels)
    if (std::find(kernels.begin(), kernels.end(), kernel) == kernels.end())
      kernels.push_back(kernel);
  ctas += other.ctas;
  seconds += other.seconds;
  for (const InstructionCounts& from : other.instructions) {
    const auto same = [&](const InstructionCounts& i) { return i.name == from.name; };
    auto to = std::find_if(instructions.begin(), instructions.end(), same);
    if (to == instructions.end()) {
      instructions.push_back(from);
      continue;
    }
    to->executed += from.executed;
    to->shared_bytes += from.shared_bytes;
    to->wavefronts += from.wavefronts;
    to->bank_conflicts += from.bank_conflicts;
    to->global_bytes += from.global_bytes;
    to->sectors += from.sectors;
  }
}

std::string EmulatorReport::str() const {
  char time[64];
  std::snprintf(time, sizeof time, "%.2f s", seconds);
  std::string text = "emulated " + arch + ": " + config + "\n" + std::to_string(ctas) +
                     " CTAs of " + std::to_string(threads) + " threads, seed " +
                     std::to_string(seed) + ", " + time + ", no errors\n";
  text += row("instruction",
              {"executed", "shared bytes", "wavefronts", "conflicts", "global bytes", "sectors"});
  for (const InstructionCounts& i : instructions)
    text += row(i.name, {cell(i.executed), cell(i.shared_bytes), cell(i.wavefronts),
                         i.wavefronts ? std::to_string(i.bank_conflicts) : "-",
                         cell(i.global_bytes), cell(i.sectors)});
  return text;
}

}  // namespace fastgemm

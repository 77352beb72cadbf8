// Bank conflicts and sectors, counted a warp instruction at a time.
#include "emulator/counters.hpp"

#include <algorithm>
#include <cstdio>

namespace fastgemm::emulated {
namespace {

constexpr int banks = 32, bank_bytes = 4, sector_bytes = 32;

const char* name_of(Op op) {
  constexpr const char* names[] = {"ldmatrix", "stmatrix",  "ld.shared", "st.shared",    "st.async",
                                   "cp.async", "ld.global", "st.global", "mma.sync",     "wgmma",
                                   "TMA load", "TMA store", "bar.sync",  "mbarrier wait"};
  return names[static_cast<std::size_t>(op)];
}

bool is_shared(Op op) { return op <= Op::cp_async; }
bool is_global(Op op) { return op == Op::cp_async || op == Op::ld_global || op == Op::st_global; }

// Lanes that are served in one pass at best: 128 bytes of them.
int lanes_of_pass(int bytes) { return std::min(32, banks * bank_bytes / std::max(bytes, 4)); }

}  // namespace

void Counters::add(const Counters& other) {
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    Counts& to = counts_[i];
    const Counts& from = other.counts_[i];
    to.executed += from.executed;
    to.shared_bytes += from.shared_bytes;
    to.wavefronts += from.wavefronts;
    to.ideal_wavefronts += from.ideal_wavefronts;
    to.global_bytes += from.global_bytes;
    to.sectors += from.sectors;
  }
}

std::vector<InstructionCounts> Counters::table() const {
  std::vector<InstructionCounts> rows;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    const Counts& c = counts_[i];
    if (c.executed)
      rows.push_back({name_of(static_cast<Op>(i)), c.executed, c.shared_bytes, c.wavefronts,
                      c.wavefronts - c.ideal_wavefronts, c.global_bytes, c.sectors});
  }
  return rows;
}

int wavefronts(const std::uint32_t* addresses, int lanes, int bytes) {
  const int step = lanes_of_pass(bytes);
  int total = 0;
  for (int first = 0; first < lanes; first += step) {
    std::uint32_t words[banks][32];
    int used[banks] = {}, most = 0;
    for (int lane = first; lane < std::min(first + step, lanes); ++lane)
      for (int b = 0; b < std::max(bytes, bank_bytes); b += bank_bytes) {
        const std::uint32_t word = (addresses[lane] + static_cast<std::uint32_t>(b)) / bank_bytes;
        const std::uint32_t bank = word % banks;
        if (std::find(words[bank], words[bank] + used[bank], word) != words[bank] + used[bank])
          continue;
        words[bank][used[bank]++] = word;
        most = std::max(most, used[bank]);
      }
    total += most;
  }
  return total;
}

int ideal_wavefronts(int lanes, int bytes) {
  const int step = lanes_of_pass(bytes);
  return (lanes + step - 1) / step;
}

int sectors(const std::uint64_t* addresses, int lanes, int bytes) {
  std::uint64_t found[64];
  int count = 0;
  for (int lane = 0; lane < lanes; ++lane)
    for (std::uint64_t s = addresses[lane] / sector_bytes;
         s <= (addresses[lane] + static_cast<std::uint64_t>(bytes) - 1) / sector_bytes; ++s)
      if (std::find(found, found + count, s) == found + count) found[count++] = s;
  return count;
}

void WarpAccesses::count(Counters& counters, Op op, const Instruction& instruction) {
  std::uint32_t shared[32];
  std::uint64_t global[32];
  int lanes = 0, from_global = 0;
  for (int lane = 0; lane < 32; ++lane)
    if (instruction.lanes >> lane & 1) {
      shared[lanes++] = instruction.shared[lane];
      if (instruction.global[lane]) global[from_global++] = instruction.global[lane];
    }
  Counts& c = counters[op];
  ++c.executed;
  if (is_shared(op)) {
    c.shared_bytes += lanes * instruction.bytes;
    c.wavefronts += wavefronts(shared, lanes, instruction.bytes);
    c.ideal_wavefronts += ideal_wavefronts(lanes, instruction.bytes);
  }
  if (is_global(op)) {
    c.global_bytes += instruction.global_bytes;
    c.sectors += sectors(global, from_global, instruction.bytes);
  }
}

void WarpAccesses::add(Counters& counters, Op op, int lane, std::uint32_t shared,
                       std::uint64_t global, int bytes, int global_bytes) {
  const std::size_t width = bytes == 16 ? 3 : bytes == 8 ? 2 : bytes == 4 ? 1 : 0;
  Stream& stream = streams_[static_cast<std::size_t>(op)][width];
  const auto at = static_cast<std::size_t>(lane);
  const std::uint32_t place = stream.next[at]++ - stream.first;
  if (place >= stream.open.size()) stream.open.resize(place + 1);
  Instruction& instruction = stream.open[place];
  instruction.bytes = bytes;
  instruction.global_bytes += global_bytes;
  instruction.lanes |= 1u << lane;
  instruction.shared[at] = shared;
  instruction.global[at] = global;
  any_ = true;
  while (!stream.open.empty() && stream.open.front().lanes == 0xffffffffu) {
    count(counters, op, stream.open.front());
    stream.open.pop_front();
    ++stream.first;
  }
}

void WarpAccesses::flush(Counters& counters) {
  if (!any_) return;
  for (std::size_t i = 0; i < streams_.size(); ++i)
    for (Stream& stream : streams_[i]) {
      for (const Instruction& instruction : stream.open)
        count(counters, static_cast<Op>(i), instruction);
      stream.first = 0;
      stream.open.clear();
      stream.next.fill(0);
    }
  any_ = false;
}

}  // namespace fastgemm::emulated

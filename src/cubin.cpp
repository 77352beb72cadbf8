// Reads the ELF sections .nv.info and .nv.shared of a cubin, whose bytes may be damaged.
#include "cubin.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "fastgemm/error.hpp"

namespace fastgemm {
namespace {

// Attributes of .nv.info that carry {symbol index, value}.
constexpr std::uint8_t attribute_frame_size = 0x11;
constexpr std::uint8_t attribute_register_count = 0x2f;
// Formats of an attribute: only the last has a payload beyond its four bytes.
constexpr std::uint8_t format_without_value = 1, format_with_size = 4;

// From sm_90 on, a kernel's shared memory begins with what the driver keeps for itself.
constexpr std::string_view reserved_section = ".nv.shared.reserved.0";
constexpr std::uint64_t reserved_bytes = 1024;

[[noreturn]] void damaged(const std::string& reason) {
  throw CompileError("the cubin is damaged: " + reason);
}

std::string_view part_of(std::string_view bytes, std::uint64_t offset, std::uint64_t size) {
  if (offset > bytes.size() || size > bytes.size() - offset) damaged("it is cut short");
  return bytes.substr(offset, size);
}

template <typename T>
T read_at(std::string_view bytes, std::uint64_t offset) {
  T value;
  std::memcpy(&value, part_of(bytes, offset, sizeof value).data(), sizeof value);
  return value;
}

std::string_view text_at(std::string_view bytes, std::uint64_t offset) {
  if (offset >= bytes.size()) damaged("a name lies outside its table");
  const std::string_view rest = bytes.substr(offset);
  return rest.substr(0, rest.find('\0'));
}

class Elf {
 public:
  explicit Elf(std::string_view bytes) : bytes_(bytes) {
    header_ = read_at<Elf64_Ehdr>(bytes_, 0);
    if (std::memcmp(header_.e_ident, ELFMAG, SELFMAG) != 0 ||
        header_.e_ident[EI_CLASS] != ELFCLASS64 || header_.e_shentsize != sizeof(Elf64_Shdr))
      damaged("it is no 64-bit ELF file");
    part_of(bytes_, header_.e_phoff, std::uint64_t{header_.e_phnum} * sizeof(Elf64_Phdr));
    names_ = content(section(header_.e_shstrndx));
  }

  int section_count() const { return header_.e_shnum; }

  Elf64_Shdr section(std::uint64_t index) const {
    if (index >= header_.e_shnum) damaged("a section is missing");
    return read_at<Elf64_Shdr>(table(), index * sizeof(Elf64_Shdr));
  }

  std::string_view name(const Elf64_Shdr& section) const {
    return text_at(names_, section.sh_name);
  }

  std::string_view content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS) return {};
    return part_of(bytes_, section.sh_offset, section.sh_size);
  }

  // The index in the symbol table of the function `name`.
  std::uint32_t function_index(std::string_view name) const {
    for (int i = 0; i < section_count(); ++i) {
      const Elf64_Shdr symbols = section(i);
      if (symbols.sh_type != SHT_SYMTAB) continue;
      const std::string_view entries = content(symbols), text = content(section(symbols.sh_link));
      for (std::uint32_t at = 0; (at + 1) * sizeof(Elf64_Sym) <= entries.size(); ++at) {
        const auto symbol = read_at<Elf64_Sym>(entries, at * sizeof(Elf64_Sym));
        if (ELF64_ST_TYPE(symbol.st_info) == STT_FUNC && text_at(text, symbol.st_name) == name)
          return at;
      }
    }
    damaged("it has no kernel " + std::string(name));
  }

 private:
  std::string_view table() const {
    return part_of(bytes_, header_.e_shoff, std::uint64_t{header_.e_shnum} * sizeof(Elf64_Shdr));
  }

  std::string_view bytes_, names_;
  Elf64_Ehdr header_;
};

int to_int(std::uint64_t value) {
  if (value > 0x7fffffff) damaged("a size is absurd");
  return static_cast<int>(value);
}

}  // namespace

CubinResources read_cubin(std::string_view cubin, std::string_view kernel) {
  const Elf elf(cubin);
  const std::uint32_t function = elf.function_index(kernel);
  CubinResources resources;
  bool registers_found = false;
  std::uint64_t shared = 0, reserved = 0;
  for (int i = 0; i < elf.section_count(); ++i) {
    const Elf64_Shdr section = elf.section(i);
    const std::string_view name = elf.name(section);
    if (name == ".nv.shared." + std::string(kernel)) shared = section.sh_size;
    if (name == reserved_section) reserved = reserved_bytes;
    if (name != ".nv.info") continue;
    const std::string_view info = elf.content(section);
    for (std::uint64_t at = 0; at < info.size();) {
      const auto format = read_at<std::uint8_t>(info, at);
      const auto attribute = read_at<std::uint8_t>(info, at + 1);
      const auto size = read_at<std::uint16_t>(info, at + 2);
      at += 4;
      if (format < format_without_value || format > format_with_size)
        damaged("an attribute has an unknown format");
      if (format != format_with_size) continue;
      const std::string_view value = part_of(info, at, size);
      at += size;
      if (attribute != attribute_register_count && attribute != attribute_frame_size) continue;
      if (read_at<std::uint32_t>(value, 0) != function) continue;
      const int number = to_int(read_at<std::uint32_t>(value, 4));
      if (attribute == attribute_frame_size) {
        resources.local_bytes = number;
      } else {
        resources.registers = number;
        registers_found = true;
      }
    }
  }
  if (!registers_found) damaged("it does not say how many registers the kernel has");
  resources.static_shared_bytes = to_int(shared - std::min(shared, reserved));
  return resources;
}

}  // namespace fastgemm

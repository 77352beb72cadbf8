// The device headers: embedded ones, or a folder's.
#include "device_headers.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "fastgemm/error.hpp"
#include "file_io.hpp"
#include "hash.hpp"

namespace fastgemm {
namespace {

HeaderSet embedded_set() {
  std::vector<std::string> names, contents;
  for (std::size_t i = 0; i < embedded_header_count; ++i) {
    names.emplace_back(embedded_headers[i].name);
    contents.emplace_back(embedded_headers[i].content);
  }
  return make_header_set(std::move(names), std::move(contents));
}

}  // namespace

HeaderSet make_header_set(std::vector<std::string> names, std::vector<std::string> contents) {
  Hasher hasher;
  for (std::size_t i = 0; i < names.size(); ++i) hasher.add_field(names[i]).add_field(contents[i]);
  return {std::move(names), std::move(contents), hasher.value().hex()};
}

HeaderSet read_header_folder(const std::string& folder) {
  namespace fs = std::filesystem;
  std::vector<std::string> names, contents;
  std::error_code error;
  const fs::path root(folder);
  for (fs::recursive_directory_iterator it(root / "fastgemm" / "device", error), end;
       !error && it != end; it.increment(error)) {
    if (it->path().extension() == ".cuh")
      names.push_back(it->path().lexically_relative(root).generic_string());
  }
  if (error || names.empty())
    throw CompileError("FASTGEMM_DEVICE_HEADERS: there are no fastgemm/device/*.cuh in " + folder +
                       (error ? " (" + error.message() + ")" : ""));
  std::sort(names.begin(), names.end());
  for (const std::string& name : names) {
    std::optional<std::string> content = read_file((root / name).string());
    if (!content)
      throw CompileError("the device header " + (root / name).string() + " cannot be read");
    contents.push_back(std::move(*content));
  }
  return make_header_set(std::move(names), std::move(contents));
}

const HeaderSet& device_headers() {
  static const HeaderSet headers = [] {
    const char* folder = std::getenv("FASTGEMM_DEVICE_HEADERS");
    return folder && *folder ? read_header_folder(folder) : embedded_set();
  }();
  return headers;
}

}  // namespace fastgemm

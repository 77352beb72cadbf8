// Compiled kernels on disk.
#include "disk_cache.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "file_io.hpp"
#include "hash.hpp"
#include "log_internal.hpp"

namespace fastgemm {
namespace {

constexpr char magic[8] = {'f', 'g', 'e', 'm', 'm', 'k', '0', '1'};
constexpr std::string_view suffix = ".kernel";
constexpr std::string_view temp_prefix = ".tmp-";
constexpr std::time_t stale_seconds = 3600;  // a temporary file that old has lost its writer

struct Header {
  char magic[8];
  std::uint64_t key_bytes, payload_bytes;
  Hash128 checksum;  // of key and payload
};

Hash128 checksum(std::string_view key, std::string_view payload) {
  return Hasher().add_field(key).add_field(payload).value();
}

std::string encode(std::string_view key, std::string_view payload) {
  Header header{{}, key.size(), payload.size(), checksum(key, payload)};
  std::memcpy(header.magic, magic, sizeof magic);
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  return file.append(key).append(payload);
}

// The payload of a file's content; nothing when it is damaged or stands for another key.
std::optional<std::string> decode(std::string_view file, std::string_view key) {
  Header header;
  if (file.size() < sizeof header) return {};
  std::memcpy(&header, file.data(), sizeof header);
  const std::string_view body = file.substr(sizeof header);
  if (std::memcmp(header.magic, magic, sizeof magic) != 0 || header.key_bytes != key.size() ||
      header.key_bytes > body.size() || header.payload_bytes != body.size() - header.key_bytes)
    return {};
  const std::string_view payload = body.substr(key.size());
  if (body.substr(0, key.size()) != key || header.checksum != checksum(key, payload)) return {};
  return std::string(payload);
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

struct CacheFile {
  std::string path;
  std::int64_t bytes;
  struct timespec used;
  bool temporary;
};

std::vector<CacheFile> list_files(const std::string& folder) {
  std::vector<CacheFile> files;
  DIR* dir = folder.empty() ? nullptr : ::opendir(folder.c_str());
  if (!dir) return files;
  while (const dirent* entry = ::readdir(dir)) {
    const std::string_view name = entry->d_name;
    const bool temporary = name.substr(0, temp_prefix.size()) == temp_prefix;
    if (!temporary && !ends_with(name, suffix)) continue;
    std::string path = folder + "/" + entry->d_name;
    struct stat status;
    if (::lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      files.push_back({std::move(path), status.st_size, status.st_mtim, temporary});
  }
  ::closedir(dir);
  return files;
}

void delete_oldest_beyond(const std::string& folder, std::int64_t max_bytes) {
  std::vector<CacheFile> files = list_files(folder);
  const std::time_t now = std::time(nullptr);
  std::int64_t total = 0;
  for (const CacheFile& file : files) {
    if (!file.temporary)
      total += file.bytes;
    else if (now - file.used.tv_sec > stale_seconds)
      ::unlink(file.path.c_str());
  }
  if (total <= max_bytes) return;
  std::sort(files.begin(), files.end(), [](const CacheFile& a, const CacheFile& b) {
    return a.used.tv_sec != b.used.tv_sec ? a.used.tv_sec < b.used.tv_sec
                                          : a.used.tv_nsec < b.used.tv_nsec;
  });
  for (const CacheFile& file : files) {
    if (total <= max_bytes) break;
    if (file.temporary) continue;
    ::unlink(file.path.c_str());
    total -= file.bytes;
  }
}

std::string file_in(const std::string& folder, std::string_view key) {
  return folder + "/" + hash128(key).hex() + std::string(suffix);
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::vector<std::string> folders_from_environment() {
  std::vector<std::string> folders;
  if (const std::string own = environment("FASTGEMM_CACHE_DIR"); !own.empty())
    folders.push_back(absolute_path(own));
  // The XDG specification has relative paths ignored.
  if (const std::string xdg = environment("XDG_CACHE_HOME"); xdg.substr(0, 1) == "/")
    folders.push_back(xdg + "/fastgemm");
  if (const std::string home = environment("HOME"); home.substr(0, 1) == "/")
    folders.push_back(home + "/.cache/fastgemm");
  if (std::string temp = private_temp_folder_name(); !temp.empty())
    folders.push_back(std::move(temp));
  return folders;
}

std::int64_t max_bytes_from_environment() {
  constexpr std::int64_t mib = 1 << 20, default_mib = 256, most_mib = std::int64_t{1} << 40;
  const std::string text = environment("FASTGEMM_CACHE_MB");
  if (text.empty()) return default_mib * mib;
  char* end = nullptr;
  const long long value = std::strtoll(text.c_str(), &end, 10);
  if (*end || value < 0) {
    log_warning("FASTGEMM_CACHE_MB=" + text + " is not a number of MiB; using " +
                std::to_string(default_mib));
    return default_mib * mib;
  }
  return std::min<std::int64_t>(value, most_mib) * mib;
}

}  // namespace

DiskCache::DiskCache(std::vector<std::string> folders, std::int64_t max_bytes)
    : folders_(std::move(folders)), max_bytes_(max_bytes) {}

const DiskCache::Choice& DiskCache::choice() {
  std::lock_guard<std::mutex> lock(mutex_);
  if (choice_) return *choice_;
  Choice choice;
  if (max_bytes_ > 0) {
    for (const std::string& folder : folders_) {
      const std::string refusal = prepare_folder(folder);
      if (refusal.empty()) {
        choice.readable.push_back(folder);
        choice.writable = folder;
        break;
      }
      if (is_readable_folder(folder)) choice.readable.push_back(folder);
      refusals_.push_back(refusal);
    }
  }
  return choice_.emplace(std::move(choice));
}

void DiskCache::warn_once(const std::string& message) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (warned_) return;
    warned_ = true;
  }
  log_warning(message);
}

std::optional<std::string> DiskCache::load(std::string_view key) {
  for (const std::string& folder : choice().readable) {
    const std::string path = file_in(folder, key);
    const std::optional<std::string> file = read_file_and_touch(path);
    if (!file) continue;
    if (std::optional<std::string> payload = decode(*file, key)) return payload;
    log_info("the cached kernel " + path + " is damaged or another's; it will be rebuilt");
  }
  return {};
}

void DiskCache::store(std::string_view key, std::string_view payload) {
  const Choice& folders = choice();
  if (max_bytes_ <= 0) return;
  if (!refusals_.empty() || folders.writable.empty()) {
    std::string reasons;
    for (const std::string& refusal : refusals_) reasons += refusal + "; ";
    if (reasons.empty()) reasons = "no folder is known; ";
    warn_once(
        "compiled kernels cannot be kept in the preferred folder: " + reasons +
        (folders.writable.empty() ? "they stay in memory only" : "using " + folders.writable) +
        ". Set FASTGEMM_CACHE_DIR to a folder that can be written.");
  }
  if (folders.writable.empty()) return;
  const std::string file = encode(key, payload);
  if (static_cast<std::int64_t>(file.size()) > max_bytes_) return;
  const std::string path = file_in(folders.writable, key);
  std::string failure = write_file_atomically(path, file);
  // Someone may have deleted the whole folder since.
  if (!failure.empty() && prepare_folder(folders.writable).empty())
    failure = write_file_atomically(path, file);
  if (!failure.empty()) {
    warn_once("a compiled kernel could not be kept on disk: " + failure);
    return;
  }
  delete_oldest_beyond(folders.writable, max_bytes_);
}

void DiskCache::clear() {
  for (const CacheFile& file : list_files(choice().writable)) ::unlink(file.path.c_str());
}

DiskCacheInfo DiskCache::info() {
  const Choice& folders = choice();
  DiskCacheInfo info;
  info.path = folders.writable.empty() && !folders.readable.empty() ? folders.readable.front()
                                                                    : folders.writable;
  for (const CacheFile& file : list_files(info.path)) {
    if (file.temporary) continue;
    ++info.files;
    info.bytes += file.bytes;
  }
  return info;
}

DiskCache& disk_cache() {
  static auto& cache = *new DiskCache(folders_from_environment(), max_bytes_from_environment());
  return cache;
}

}  // namespace fastgemm

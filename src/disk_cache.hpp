// Compiled kernels on disk, one checksummed file each, shared by processes.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fastgemm {

struct DiskCacheInfo {
  std::string path;  // empty: there is no usable folder
  std::int64_t files = 0, bytes = 0;
};

class DiskCache {
 public:
  // `folders`: where to keep files, the preferred first; the first that exists or can be made is
  // used. One that is read-only still gives hits, and files are then written to the next. Beyond
  // `max_bytes` in all, the files unused for longest are deleted. Nothing is touched before the
  // first use.
  DiskCache(std::vector<std::string> folders, std::int64_t max_bytes);

  // What was stored under exactly this key text; nothing when it is absent or damaged.
  std::optional<std::string> load(std::string_view key);

  // Best effort. The one warning of a cache's life goes to the log.
  void store(std::string_view key, std::string_view payload);

  void clear();
  DiskCacheInfo info();

 private:
  struct Choice {
    std::vector<std::string> readable;  // where to look
    std::string writable;               // empty: memory only
  };

  const Choice& choice();
  void warn_once(const std::string& message);

  const std::vector<std::string> folders_;
  const std::int64_t max_bytes_;
  std::mutex mutex_;
  std::optional<Choice> choice_;
  std::vector<std::string> refusals_;  // why a preferred folder is not the one written to
  bool warned_ = false;
};

// The process's cache: FASTGEMM_CACHE_DIR, XDG_CACHE_HOME/fastgemm, HOME/.cache/fastgemm, then a
// private folder among the temporary files; FASTGEMM_CACHE_MB MiB at most (256), 0 switches it off.
// The environment is read once.
DiskCache& disk_cache();

}  // namespace fastgemm

// Whole files, private folders, atomic replacement.
#include "file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

namespace fastgemm {
namespace {

std::string error_text(const std::string& path) { return path + ": " + std::strerror(errno); }

std::string parent_of(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == std::string::npos || slash == 0 ? "/" : path.substr(0, slash);
}

bool is_folder(const std::string& path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

// Others can create names among the temporary files: what stands there must be ours alone. A
// link counts as open to all: its own mode is 0777.
bool is_foreign_temp(const std::string& folder) {
  if (folder != private_temp_folder_name()) return false;
  struct stat status;
  if (::lstat(folder.c_str(), &status) != 0) return false;
  return status.st_uid != ::geteuid() || (status.st_mode & 077) != 0;
}

std::string make_folders(const std::string& folder) {
  if (is_folder(folder)) return {};
  if (folder != "/") {
    if (std::string refusal = make_folders(parent_of(folder)); !refusal.empty()) return refusal;
  }
  if (::mkdir(folder.c_str(), 0700) == 0 || is_folder(folder)) return {};
  return error_text(folder);
}

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool close() {
    const int fd = fd_;
    fd_ = -1;
    return fd < 0 || ::close(fd) == 0;
  }

 private:
  int fd_;
};

std::optional<std::string> read_whole(int fd) {
  struct stat status;
  if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return {};
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t done = 0;
  while (done < content.size()) {
    const ssize_t got = ::read(fd, &content[done], content.size() - done);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return {};
    done += static_cast<std::size_t>(got);
  }
  return content;
}

bool write_whole(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) return false;
    content.remove_prefix(static_cast<std::size_t>(put));
  }
  return true;
}

std::string unique_temp_name(const std::string& folder) {
  std::random_device random;
  char name[64];
  std::snprintf(name, sizeof name, "/.tmp-%ld-%08x%08x", static_cast<long>(::getpid()), random(),
                random());
  return folder + name;
}

}  // namespace

std::string absolute_path(const std::string& path) {
  if (path.substr(0, 1) == "/") return path;
  char here[PATH_MAX];
  return ::getcwd(here, sizeof here) ? std::string(here) + "/" + path : path;
}

std::string prepare_folder(const std::string& folder) {
  if (std::string refusal = make_folders(folder); !refusal.empty()) return refusal;
  if (is_foreign_temp(folder)) return folder + ": not a folder of this user alone";
  if (::access(folder.c_str(), R_OK | W_OK | X_OK) != 0) return error_text(folder);
  return {};
}

bool is_readable_folder(const std::string& folder) {
  return is_folder(folder) && !is_foreign_temp(folder) &&
         ::access(folder.c_str(), R_OK | X_OK) == 0;
}

std::string private_temp_folder_name() {
  const char* setting = std::getenv("TMPDIR");
  const std::string base = setting && *setting == '/' ? setting : "/tmp";
  return base + "/fastgemm-" + std::to_string(::geteuid());
}

std::optional<std::string> read_file(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return {};
  return read_whole(file.get());
}

std::optional<std::string> read_file_and_touch(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) return {};
  ::futimens(file.get(), nullptr);
  return read_whole(file.get());
}

std::string write_file_atomically(const std::string& path, std::string_view content) {
  const std::string folder = parent_of(path);
  const std::string temp = unique_temp_name(folder);
  Descriptor file(::open(temp.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.get() < 0) return error_text(temp);
  std::string failure;
  if (!write_whole(file.get(), content) || ::fsync(file.get()) != 0 || !file.close() ||
      ::rename(temp.c_str(), path.c_str()) != 0)
    failure = error_text(path);
  if (!failure.empty()) {
    ::unlink(temp.c_str());
    return failure;
  }
  Descriptor directory(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (directory.get() >= 0) ::fsync(directory.get());
  return {};
}

}  // namespace fastgemm

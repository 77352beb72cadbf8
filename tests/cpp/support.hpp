// What the unit tests share: temporary folders, child processes with an environment of their own,
// NVRTCs to try.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

namespace fastgemm::test {

class TempFolder {
 public:
  TempFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "fastgemm-test-XXXXXX").string();
    if (!::mkdtemp(name.data())) std::abort();
    path_ = name;
  }
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline void write(const std::filesystem::path& path, const std::string& content) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << content;
}

inline std::vector<std::filesystem::path> files_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(entry.path());
  return files;
}

using Environment = std::map<std::string, std::string>;  // "-" unsets

// Forks a child that runs `body` in its own copy of the process's state; returns its id.
template <typename Body>
pid_t start_child(const Environment& environment, Body body) {
  std::fflush(nullptr);
  const pid_t child = ::fork();
  if (child != 0) return child;
  for (const auto& [name, value] : environment) {
    if (value == "-")
      ::unsetenv(name.c_str());
    else
      ::setenv(name.c_str(), value.c_str(), 1);
  }
  try {
    body();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "threw: " << error.what();
  }
  std::fflush(nullptr);
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

inline void expect_success_of(pid_t child) {
  int status = 0;
  ASSERT_EQ(child, ::waitpid(child, &status, 0));
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "child status " << status;
}

template <typename Body>
void in_child(const Environment& environment, Body body) {
  expect_success_of(start_child(environment, body));
}

// Folder modes do not bind root: gives up its rights, for good, so only in a child.
inline void stop_being_root() {
  if (::geteuid() == 0 && ::setresuid(12345, 12345, 12345) != 0) std::abort();
}

// Every libnvrtc of the wheels that the Python on the PATH sees, or those that FASTGEMM_TEST_NVRTC
// lists (colons between).
inline const std::vector<std::string>& nvrtc_paths() {
  static const std::vector<std::string> paths = [] {
    std::string folders;
    if (const char* setting = std::getenv("FASTGEMM_TEST_NVRTC")) {
      folders = setting;
    } else if (FILE* python =
                   ::popen("python3 -c \"import nvidia; print(':'.join(f'{p}/{s}/lib' "
                           "for p in nvidia.__path__ for s in ('cu13', 'cuda_nvrtc')))\" "
                           "2>/dev/null",
                           "r")) {
      char line[4096];
      if (std::fgets(line, sizeof line, python)) folders = line;
      ::pclose(python);
    }
    if (!folders.empty() && folders.back() == '\n') folders.pop_back();
    std::vector<std::string> found;
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');)
      for (const char* name : {"/libnvrtc.so.13", "/libnvrtc.so.12"})
        if (std::filesystem::exists(folder + name)) found.push_back(folder + name);
    return found;
  }();
  return paths;
}

// Skips where there is no NVRTC to test with; with FASTGEMM_TEST_ALL=1 that is a failure.
#define NEED_NVRTC()                                                                 \
  if (::fastgemm::test::nvrtc_paths().empty()) {                                     \
    const char* all = std::getenv("FASTGEMM_TEST_ALL");                              \
    if (all && std::string(all) == "1") FAIL() << "no NVRTC wheel is installed";     \
    GTEST_SKIP() << "no NVRTC wheel is installed: the Python on the PATH sees none"; \
  }

}  // namespace fastgemm::test

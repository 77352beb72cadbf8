// DiskCache: damage, collisions, many processes, sudden death, and folders that cannot be used.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <chrono>
#include <thread>

#include "disk_cache.hpp"
#include "fastgemm/log.hpp"
#include "file_io.hpp"
#include "hash.hpp"
#include "support.hpp"

namespace fastgemm {
namespace {

using test::files_in;
using test::in_child;
using test::TempFolder;
namespace fs = std::filesystem;

constexpr std::int64_t plenty = 64 << 20;

mode_t mode_of(const fs::path& path) {
  struct stat status{};
  ::stat(path.c_str(), &status);
  return status.st_mode & 0777;
}

void set_age(const fs::path& path, int seconds) {
  struct timespec times[2] = {{::time(nullptr) - seconds, 0}, {::time(nullptr) - seconds, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

fs::path file_of(const fs::path& folder, const std::string& key) {
  return folder / (hash128(key).hex() + ".kernel");
}

// Warnings of a scope.
class Warnings {
 public:
  Warnings() {
    set_log_hook([this](LogLevel level, const std::string& message) {
      if (level == LogLevel::warning) messages.push_back(message);
    });
  }
  ~Warnings() { set_log_hook({}); }
  std::vector<std::string> messages;
};

TEST(DiskCache, GivesBackWhatWasStoredUnderThisVeryKey) {
  TempFolder temp;
  const std::string payload("machine\0code", 12);
  DiskCache(std::vector<std::string>{temp / "cache"}, plenty).store("key", payload);
  DiskCache cache({temp / "cache"}, plenty);
  EXPECT_EQ(cache.load("key"), payload);
  EXPECT_FALSE(cache.load("key2"));
  EXPECT_FALSE(cache.load(""));
}

TEST(DiskCache, IsPrivate) {
  TempFolder temp;
  DiskCache cache({temp / "a/b/cache"}, plenty);
  cache.store("key", "payload");
  EXPECT_EQ(mode_of(temp / "a/b/cache"), 0700u);
  EXPECT_EQ(mode_of(file_of(temp / "a/b/cache", "key")), 0600u);
}

TEST(DiskCache, EveryTruncatedOrFlippedEntryIsAMissAndIsRebuilt) {
  TempFolder temp;
  DiskCache cache({temp.path()}, plenty);
  cache.store("some key", "some payload");
  const fs::path path = file_of(temp.path(), "some key");
  const std::string good = test::read(path);
  for (std::size_t size = 0; size < good.size(); ++size) {
    test::write(path, good.substr(0, size));
    ASSERT_FALSE(cache.load("some key")) << "cut to " << size;
  }
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << (bit % 8)));
    test::write(path, bad);
    ASSERT_FALSE(cache.load("some key")) << "bit " << bit;
  }
  test::write(path, good + "x");
  EXPECT_FALSE(cache.load("some key"));
  cache.store("some key", "some payload");
  EXPECT_EQ(cache.load("some key"), "some payload");
}

TEST(DiskCache, AnEntryRenamedToAnotherKeyIsAMiss) {
  TempFolder temp;
  DiskCache cache({temp.path()}, plenty);
  cache.store("target sm_80", "code for sm_80");
  fs::rename(file_of(temp.path(), "target sm_80"), file_of(temp.path(), "target sm_90"));
  EXPECT_FALSE(cache.load("target sm_90"));
  cache.store("target sm_90", "code for sm_90");
  EXPECT_EQ(cache.load("target sm_90"), "code for sm_90");
}

TEST(DiskCache, SixteenProcessesFillOneEmptyFolder) {
  for (int round = 0; round < 10; ++round) {
    TempFolder temp;
    const std::string folder = temp / "cache";
    const auto payload = [](int kernel) { return std::string(20000 + kernel, 'a' + kernel); };
    int start[2];
    ASSERT_EQ(::pipe(start), 0);
    std::vector<pid_t> children;
    for (int p = 0; p < 16; ++p) {
      children.push_back(test::start_child({}, [&, p] {
        ::close(start[1]);
        char byte;
        ASSERT_EQ(::read(start[0], &byte, 1), 0);  // until the parent closes its end
        DiskCache cache({folder}, plenty);
        for (int i = 0; i < 4; ++i) {
          const int kernel = (i + p) % 4;
          const std::string key = "kernel " + std::to_string(kernel);
          if (const auto found = cache.load(key)) {
            EXPECT_EQ(*found, payload(kernel));
          } else {
            cache.store(key, payload(kernel));
          }
          EXPECT_EQ(cache.load(key), payload(kernel));
        }
      }));
    }
    ::close(start[0]);
    ::close(start[1]);
    for (const pid_t child : children) test::expect_success_of(child);
    EXPECT_EQ(files_in(folder).size(), 4u) << "a temporary file was left";
  }
}

TEST(DiskCache, AProcessKilledMidWriteLeavesNothingThatIsRead) {
  TempFolder temp;
  const std::string payload(8 << 20, 'p');
  DiskCache cache({temp.path()}, plenty);
  int interrupted = 0;
  for (int attempt = 0; attempt < 12; ++attempt) {
    const pid_t child = test::start_child({}, [&] {
      DiskCache writer({temp.path()}, plenty);
      for (;;) writer.store("key", payload);
    });
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
    const auto writing = [&] {
      for (const fs::path& file : files_in(temp.path()))
        if (file.filename().string().rfind(".tmp-", 0) == 0) return true;
      return false;
    };
    try {
      while (!writing() && std::chrono::steady_clock::now() < deadline)
        std::this_thread::sleep_for(std::chrono::microseconds(200));
    } catch (const fs::filesystem_error&) {
    }
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    for (const fs::path& file : files_in(temp.path())) {
      if (file.extension() == ".kernel") continue;
      ++interrupted;
      set_age(file, 2 * 3600);
    }
    const auto found = cache.load("key");
    EXPECT_TRUE(!found || *found == payload);
  }
  EXPECT_GT(interrupted, 0) << "no write was ever interrupted: the test tested nothing";
  cache.store("key", payload);
  EXPECT_EQ(cache.load("key"), payload);
  EXPECT_EQ(files_in(temp.path()).size(), 1u) << "stale temporary files were not removed";
}

TEST(DiskCache, AReadOnlyFolderStillGivesHitsAndWritesGoElsewhereWithOneWarning) {
  TempFolder temp;
  const std::string filled = temp / "filled", next = temp / "next";
  DiskCache({filled}, plenty).store("old", "from the image");
  for (const fs::path& file : files_in(filled)) fs::permissions(file, fs::perms(0444));
  fs::permissions(filled, fs::perms(0555));
  fs::permissions(temp.path(), fs::perms(0777));
  in_child({}, [&] {
    test::stop_being_root();
    Warnings warnings;
    DiskCache cache({filled, next}, plenty);
    EXPECT_EQ(cache.load("old"), "from the image");
    EXPECT_TRUE(warnings.messages.empty()) << "a hit needs no warning";
    cache.store("new", "compiled");
    cache.store("newer", "compiled too");
    EXPECT_EQ(cache.load("old"), "from the image");
    EXPECT_EQ(cache.load("new"), "compiled");
    EXPECT_EQ(cache.info().path, next);
    ASSERT_EQ(warnings.messages.size(), 1u);
    EXPECT_NE(warnings.messages[0].find(filled), std::string::npos) << warnings.messages[0];
  });
  fs::permissions(filled, fs::perms(0755));
}

TEST(DiskCache, WithNoUsableFolderItIsMemoryOnlyWithOneWarning) {
  TempFolder temp;
  test::write(temp / "file", "not a folder");
  Warnings warnings;
  DiskCache cache({temp / "file", temp / "file/below"}, plenty);
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", "payload");
  cache.store("key", "payload");
  cache.clear();
  EXPECT_FALSE(cache.load("key"));
  EXPECT_EQ(cache.info().path, "");
  ASSERT_EQ(warnings.messages.size(), 1u);
  EXPECT_NE(warnings.messages[0].find("FASTGEMM_CACHE_DIR"), std::string::npos);
  EXPECT_EQ(test::read(temp / "file"), "not a folder");
}

TEST(DiskCache, AWriteThatFailsLeavesNoFileAndOneWarning) {
  TempFolder temp;
  in_child({}, [&] {
    ::signal(SIGXFSZ, SIG_IGN);
    const struct rlimit limit{4096, 4096};
    ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
    Warnings warnings;
    DiskCache cache({temp / "cache"}, plenty);
    cache.store("big", std::string(10000, 'x'));
    cache.store("big", std::string(10000, 'x'));
    EXPECT_FALSE(cache.load("big"));
    cache.store("small", "fits");
    EXPECT_EQ(cache.load("small"), "fits");
    EXPECT_EQ(warnings.messages.size(), 1u);
    EXPECT_EQ(files_in(temp / "cache").size(), 1u);
  });
}

TEST(DiskCache, AFolderDeletedMeanwhileIsMadeAgain) {
  TempFolder temp;
  DiskCache cache({temp / "cache"}, plenty);
  cache.store("key", "payload");
  fs::remove_all(temp / "cache");
  EXPECT_FALSE(cache.load("key"));
  cache.store("key", "payload");
  EXPECT_EQ(cache.load("key"), "payload");
}

TEST(DiskCache, BeyondItsSizeWhatWasUnusedForLongestGoes) {
  TempFolder temp;
  DiskCache cache({temp.path()}, 3500);
  const std::string kilobyte(1000, 'x');
  int age = 300;
  for (const char* key : {"a", "b", "c"}) {
    cache.store(key, kilobyte);
    set_age(file_of(temp.path(), key), age -= 100);
  }
  EXPECT_TRUE(cache.load("a"));  // used just now
  cache.store("d", kilobyte);
  EXPECT_TRUE(cache.load("a"));
  EXPECT_FALSE(cache.load("b"));
  EXPECT_TRUE(cache.load("c"));
  EXPECT_TRUE(cache.load("d"));
  cache.store("too big", std::string(4000, 'x'));
  EXPECT_FALSE(cache.load("too big"));
  EXPECT_TRUE(cache.load("d")) << "what does not fit must not drive out what does";
  EXPECT_LE(cache.info().bytes, 3500);
}

TEST(DiskCache, ClearingLeavesOtherFilesAlone) {
  TempFolder temp;
  DiskCache cache({temp.path()}, plenty);
  cache.store("key", "payload");
  test::write(temp / "notes.txt", "mine");
  EXPECT_EQ(cache.info().files, 1);
  cache.clear();
  EXPECT_EQ(cache.info().files, 0);
  EXPECT_FALSE(cache.load("key"));
  EXPECT_EQ(test::read(temp / "notes.txt"), "mine");
}

TEST(DiskCacheFolders, FollowTheEnvironmentInTheStatedOrder) {
  TempFolder temp;
  const test::Environment all = {{"FASTGEMM_CACHE_DIR", temp / "own"},
                                 {"XDG_CACHE_HOME", temp / "xdg"},
                                 {"HOME", temp / "home"},
                                 {"TMPDIR", temp / "tmp"}};
  const auto path_with = [&](std::vector<std::string> unset, const std::string& expected) {
    test::Environment environment = all;
    for (const std::string& name : unset) environment[name] = "-";
    in_child(environment, [&] {
      disk_cache().store("key", "payload");
      EXPECT_EQ(disk_cache().info().path, expected);
      EXPECT_EQ(disk_cache().load("key"), "payload");
      EXPECT_EQ(mode_of(expected), 0700u);
    });
  };
  const std::string temporary = temp / ("tmp/fastgemm-" + std::to_string(::geteuid()));
  path_with({}, temp / "own");
  path_with({"FASTGEMM_CACHE_DIR"}, temp / "xdg/fastgemm");
  path_with({"FASTGEMM_CACHE_DIR", "XDG_CACHE_HOME"}, temp / "home/.cache/fastgemm");
  path_with({"FASTGEMM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"}, temporary);
}

TEST(DiskCacheFolders, AnUnwritableHomeFallsBackToThePrivateTemporaryFolder) {
  TempFolder temp;
  fs::permissions(temp.path(), fs::perms(0777));
  fs::create_directories(temp / "home");
  fs::permissions(temp / "home", fs::perms(0555));
  in_child({{"FASTGEMM_CACHE_DIR", "-"},
            {"XDG_CACHE_HOME", "/nonexistent/cache"},
            {"HOME", temp / "home"},
            {"TMPDIR", temp.path()}},
           [&] {
             test::stop_being_root();
             Warnings warnings;
             disk_cache().store("key", "payload");
             EXPECT_EQ(disk_cache().load("key"), "payload");
             EXPECT_EQ(disk_cache().info().path,
                       temp / ("fastgemm-" + std::to_string(::geteuid())));
             EXPECT_EQ(warnings.messages.size(), 1u);
           });
}

// `spoil` makes the private temporary folder one that is not ours alone.
template <typename Spoil>
void expect_distrust(Spoil spoil) {
  TempFolder temp;
  const fs::path planted = temp / ("fastgemm-" + std::to_string(::geteuid()));
  DiskCache({planted}, plenty).store("key", "planted code");
  spoil(planted);
  in_child({{"FASTGEMM_CACHE_DIR", "-"},
            {"XDG_CACHE_HOME", "-"},
            {"HOME", "-"},
            {"TMPDIR", temp.path()}},
           [&] {
             Warnings warnings;
             EXPECT_FALSE(disk_cache().load("key"));
             disk_cache().store("other", "payload");
             EXPECT_EQ(disk_cache().info().path, "");
             EXPECT_EQ(warnings.messages.size(), 1u);
           });
}

TEST(DiskCacheFolders, ATemporaryFolderThatOthersCanWriteIsNotTrusted) {
  expect_distrust([](const fs::path& planted) { fs::permissions(planted, fs::perms(0777)); });
}

TEST(DiskCacheFolders, ATemporaryFolderThatIsALinkIsNotTrusted) {
  expect_distrust([](const fs::path& planted) {
    const fs::path target = planted.string() + "-target";
    fs::rename(planted, target);
    fs::create_directory_symlink(target, planted);
  });
}

TEST(DiskCacheFolders, ATemporaryFolderOfAnotherUserIsNotTrusted) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a folder of another user";
  expect_distrust(
      [](const fs::path& planted) { ASSERT_EQ(::chown(planted.c_str(), 12345, 12345), 0); });
}

TEST(DiskCacheFolders, ASizeOfZeroSwitchesItOffAndNonsenseIsReported) {
  TempFolder temp;
  in_child({{"FASTGEMM_CACHE_DIR", temp / "cache"}, {"FASTGEMM_CACHE_MB", "0"}}, [&] {
    Warnings warnings;
    disk_cache().store("key", "payload");
    EXPECT_FALSE(disk_cache().load("key"));
    EXPECT_TRUE(warnings.messages.empty());
    EXPECT_FALSE(fs::exists(temp / "cache"));
  });
  in_child({{"FASTGEMM_CACHE_DIR", temp / "cache"}, {"FASTGEMM_CACHE_MB", "lots"}}, [&] {
    Warnings warnings;
    disk_cache().store("key", "payload");
    EXPECT_EQ(disk_cache().load("key"), "payload");
    EXPECT_EQ(warnings.messages.size(), 1u);
  });
}

}  // namespace
}  // namespace fastgemm

// The log: hook, levels, the environment, and no lock while the hook runs.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "log_internal.hpp"
#include "support.hpp"

namespace fastgemm {
namespace {

TEST(Log, WarningsAlwaysReachTheHookAndInfoOnlyWhenVerbose) {
  std::vector<std::string> messages;
  set_log_hook([&](LogLevel level, const std::string& message) {
    messages.push_back((level == LogLevel::warning ? "W " : "I ") + message);
  });
  set_verbose(false);
  log_info("unheard");
  log_warning("heard");
  set_verbose(true);
  log_info("heard too");
  set_verbose(false);
  set_log_hook({});
  EXPECT_EQ(messages, (std::vector<std::string>{"W heard", "I heard too"}));
}

TEST(Log, AHookMayLogAndReplaceItself) {
  int calls = 0;
  set_log_hook([&](LogLevel, const std::string&) {
    ++calls;
    set_log_hook([&](LogLevel, const std::string&) { calls += 10; });
    log_warning("from within");
  });
  log_warning("from without");
  set_log_hook({});
  EXPECT_EQ(calls, 11);
}

TEST(Log, HooksAreReplacedWhileOthersLog) {
  std::atomic<int> heard{0};
  std::vector<std::thread> threads;
  set_log_hook([&](LogLevel, const std::string&) { ++heard; });
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) log_warning("x");
    });
  for (int i = 0; i < 200; ++i) set_log_hook([&](LogLevel, const std::string&) { ++heard; });
  for (std::thread& thread : threads) thread.join();
  set_log_hook({});
  EXPECT_EQ(heard, 2000);
}

// Run by the test below, in a process that has not asked yet.
TEST(Log, DISABLED_IsVerbose) { EXPECT_TRUE(verbose()); }

TEST(Log, VerboseStartsAsTheEnvironmentSays) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  const std::string child = "'" + self +
                            "' --gtest_also_run_disabled_tests "
                            "--gtest_filter=Log.DISABLED_IsVerbose >/dev/null";
  EXPECT_EQ(std::system(("FASTGEMM_VERBOSE=1 " + child).c_str()), 0);
  for (const char* off : {"FASTGEMM_VERBOSE=0 ", "FASTGEMM_VERBOSE= ", "unset FASTGEMM_VERBOSE; "})
    EXPECT_NE(std::system((off + child).c_str()), 0) << off;
}

}  // namespace
}  // namespace fastgemm

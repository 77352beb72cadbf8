// Finding NVRTC: the setting, several of them, broken ones, none.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "fastgemm/error.hpp"
#include "fastgemm/kernel.hpp"
#include "nvrtc.hpp"
#include "support.hpp"

namespace fastgemm {
namespace {

using test::in_child;
using test::TempFolder;
namespace fs = std::filesystem;

const test::Environment bare = {
    {"FASTGEMM_NVRTC", "-"}, {"CONDA_PREFIX", "-"}, {"CUDA_HOME", "-"}, {"CUDA_PATH", "-"}};

std::string path_of_major(const std::string& major) {
  for (const std::string& path : test::nvrtc_paths())
    if (path.substr(path.rfind('.') + 1) == major) return path;
  return {};
}

std::string folder_of(const std::string& path) { return fs::path(path).parent_path().string(); }

std::string error_of_search() {
  try {
    return "found " + nvrtc_info().path;
  } catch (const CompileError& error) {
    return error.what();
  }
}

// The machine may have an NVRTC that needs no pointing at.
bool one_is_installed() {
  TempFolder temp;
  in_child(bare, [&] { test::write(temp / "result", error_of_search()); });
  return test::read(temp / "result").rfind("found ", 0) == 0;
}

TEST(Nvrtc, TheSettingMayBeAFileOrAFolder) {
  NEED_NVRTC();
  for (const std::string& path : test::nvrtc_paths()) {
    for (const std::string& setting : {path, folder_of(path)}) {
      in_child({{"FASTGEMM_NVRTC", setting}}, [&] {
        EXPECT_EQ(nvrtc_info().path, path);
        EXPECT_EQ(nvrtc_info().version.substr(0, 3), path.substr(path.size() - 2) + ".");
        EXPECT_FALSE(nvrtc_info().archs.empty());
      });
    }
  }
}

TEST(Nvrtc, AWrongSettingIsNeverIgnored) {
  TempFolder temp;
  test::write(temp / "libnvrtc.so.13", "not a library");
  for (const std::string& setting : {std::string("/nonexistent/libnvrtc.so.13"),
                                     temp / "libnvrtc.so.13", temp.path().string()}) {
    in_child({{"FASTGEMM_NVRTC", setting}}, [&] {
      for (const std::string& path : test::nvrtc_paths()) add_nvrtc_folder(folder_of(path));
      const std::string what = error_of_search();
      EXPECT_NE(what.find("FASTGEMM_NVRTC=" + setting), std::string::npos) << what;
    });
  }
}

TEST(Nvrtc, FoldersAreSearchedInOrderAndBrokenFilesPassedOver) {
  NEED_NVRTC();
  TempFolder temp;
  test::write(temp / "libnvrtc.so.13", "not a library");
  const std::string path = test::nvrtc_paths().front();
  in_child(bare, [&] {
    add_nvrtc_folder("/nonexistent");
    add_nvrtc_folder(temp.path());
    add_nvrtc_folder(folder_of(path));
    EXPECT_EQ(nvrtc_info().path, path);
  });
}

TEST(Nvrtc, ACopyThatIsLoadedAlreadyComesFirst) {
  NEED_NVRTC();
  for (const std::string& path : test::nvrtc_paths()) {
    in_child(bare, [&] {
      ASSERT_TRUE(::dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) << ::dlerror();
      for (const std::string& other : test::nvrtc_paths()) add_nvrtc_folder(folder_of(other));
      EXPECT_EQ(nvrtc_info().path, path);
    });
  }
}

TEST(Nvrtc, VoltaGetsTheLastMajorThatCompilesForIt) {
  const std::string v12 = path_of_major("12"), v13 = path_of_major("13");
  if (v12.empty() || v13.empty()) GTEST_SKIP() << "needs NVRTC 12 and 13";
  in_child(bare, [&] {
    add_nvrtc_folder(folder_of(v13));
    add_nvrtc_folder(folder_of(v12));
    EXPECT_EQ(nvrtc_for(90).path(), v13);
    EXPECT_EQ(nvrtc_for(70).path(), v12);
  });
}

TEST(Nvrtc, WithNoneTheErrorListsThePlacesAndThePipCommand) {
  if (one_is_installed()) GTEST_SKIP() << "this machine has an NVRTC of its own";
  in_child(bare, [&] {
    add_nvrtc_folder("/some/folder");
    const std::string what = error_of_search();
    for (const char* part :
         {"pip install nvidia-cuda-nvrtc", "FASTGEMM_NVRTC", "/some/folder", "nvidia/cu13/lib",
          "nvidia/cuda_nvrtc/lib", "libnvrtc.so.13", "libnvrtc.so.12", "/usr/local/cuda/lib64"})
      EXPECT_NE(what.find(part), std::string::npos) << part << " in: " << what;
    if (test::nvrtc_paths().empty()) return;
    add_nvrtc_folder(folder_of(test::nvrtc_paths().front()));
    EXPECT_EQ(nvrtc_info().path, test::nvrtc_paths().front()) << "a failed search is not kept";
  });
}

TEST(Nvrtc, FindingOneOpensNothing) {
  NEED_NVRTC();
  in_child({{"FASTGEMM_NVRTC", test::nvrtc_paths().front()}}, [&] {
    EXPECT_FALSE(nvrtc_for(90).identity().empty());
    const std::string maps = test::read("/proc/self/maps");
    EXPECT_EQ(maps.find("libnvrtc"), std::string::npos);
    EXPECT_GT(nvrtc_info().archs.size(), 0u);
    EXPECT_NE(test::read("/proc/self/maps").find("libnvrtc"), std::string::npos);
  });
}

TEST(Nvrtc, EachBuildHasItsOwnIdentity) {
  if (test::nvrtc_paths().size() < 2) GTEST_SKIP() << "needs two NVRTCs";
  std::vector<std::string> identities;
  TempFolder temp;
  for (const std::string& path : test::nvrtc_paths()) {
    const std::string out = temp / "identity";
    in_child({{"FASTGEMM_NVRTC", path}}, [&] { test::write(out, nvrtc_for(90).identity()); });
    identities.push_back(test::read(out));
    EXPECT_FALSE(identities.back().empty());
  }
  EXPECT_NE(identities[0], identities[1]);
  fs::create_directory_symlink(folder_of(test::nvrtc_paths().front()), temp / "moved");
  in_child({{"FASTGEMM_NVRTC", temp / "moved"}},
           [&] { EXPECT_EQ(nvrtc_for(90).identity(), identities[0]); });
}

}  // namespace
}  // namespace fastgemm

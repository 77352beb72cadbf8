// The embedded device headers are those of the source tree, byte by byte; a folder can stand in for
// them.
#include <gtest/gtest.h>

#include <algorithm>

#include "device_headers.hpp"
#include "fastgemm/error.hpp"
#include "support.hpp"

namespace fastgemm {
namespace {

namespace fs = std::filesystem;

TEST(DeviceHeaders, AreEmbeddedByteByByte) {
  test::in_child({{"FASTGEMM_DEVICE_HEADERS", "-"}}, [] {
    const fs::path include = fs::path(__FILE__).parent_path() / "../../include";
    const HeaderSet embedded = device_headers(), tree = read_header_folder(include.string());
    EXPECT_EQ(embedded.names, tree.names);
    EXPECT_EQ(embedded.contents, tree.contents);
    EXPECT_EQ(embedded.hash, tree.hash);
    EXPECT_TRUE(std::count(embedded.names.begin(), embedded.names.end(),
                           "fastgemm/device/gemm_kernel.cuh"));
  });
}

TEST(DeviceHeaders, AFolderWithoutThemIsATypedErrorThatNamesIt) {
  test::TempFolder temp;
  test::in_child({{"FASTGEMM_DEVICE_HEADERS", temp.path()}}, [&] {
    for (int attempt = 0; attempt < 2; ++attempt) {
      try {
        device_headers();
        FAIL() << "no error";
      } catch (const CompileError& error) {
        EXPECT_NE(std::string(error.what()).find(temp.path()), std::string::npos) << error.what();
      }
    }
  });
}

}  // namespace
}  // namespace fastgemm

#include "cli/terminal/table.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(TextTableTest, TheFirstColumnIsAlignedAtTheLeftAndTheOthersAtTheRight) {
  const std::vector<std::string> columns = {"codec", "ms", "bytes"};
  const std::vector<std::vector<std::string>> rows = {{"fp8_e4m3", "7", "1,000,000"},
                                                      {"topk", "11.5", "9"}};
  EXPECT_EQ(TextTable(columns, rows),
            "codec       ms      bytes\n"
            "fp8_e4m3     7  1,000,000\n"
            "topk      11.5          9\n");
  EXPECT_EQ(TextTable(columns, {}), "codec  ms  bytes\n");
}

}  // namespace
}  // namespace thinwire

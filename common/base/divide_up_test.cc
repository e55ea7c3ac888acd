#include "common/base/divide_up.h"

#include <gtest/gtest.h>

#include <limits>

namespace thinwire {
namespace {

TEST(DivideUpTest, RoundsUp) {
  EXPECT_EQ(DivideUp(0, 3), 0u);
  EXPECT_EQ(DivideUp(6, 3), 2u);
  EXPECT_EQ(DivideUp(7, 3), 3u);
  constexpr uint64_t kMost = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(DivideUp(kMost, 2), kMost / 2 + 1) << "no overflow";
}

}  // namespace
}  // namespace thinwire

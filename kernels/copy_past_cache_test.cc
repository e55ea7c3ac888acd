#include "kernels/copy_past_cache.h"

#include <vector>

#include "gtest/gtest.h"
#include "kernels/on_every_target.h"

namespace thinwire::kernels {
namespace {

TEST(CopyPastCacheTest, CopiesExactlyTheArrayForAllLengthsAndAlignments) {
  std::vector<float> from(2000);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(i + 1);
  OnEveryTarget([&] {
    for (const size_t count : {0, 1, 15, 16, 17, 63, 64, 100, 1900}) {
      for (size_t source = 0; source < 3; ++source) {
        for (size_t target = 1; target < 20; ++target) {
          std::vector<float> to(2000, -1.0f), want = to;
          CopyPastCache(std::span(from).subspan(source, count),
                        std::span(to).subspan(target, count));
          std::copy_n(from.begin() + source, count, want.begin() + target);
          ASSERT_EQ(to, want) << count << " values from " << source << " to " << target;
        }
      }
    }
  });
}

}  // namespace
}  // namespace thinwire::kernels

#include "common/huge_page_arena.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <new>
#include <random>
#include <utility>
#include <vector>

namespace thinwire {
namespace {

constexpr size_t kHugePage = HugePageArena::kHugePage;
constexpr size_t kPage = HugePageArena::kPage;
constexpr size_t kMapping = HugePageArena::kMapping;

uintptr_t Address(const void* array) { return reinterpret_cast<uintptr_t>(array); }

TEST(HugePageArena, ArraysOfAShardShareAHugePage) {
  HugePageArena arena;
  void* const first = arena.Take(kHugePage / 2);
  void* const second = arena.Take(kHugePage / 2);
  EXPECT_EQ(Address(first) % kHugePage, 0);
  EXPECT_EQ(Address(second), Address(first) + kHugePage / 2);
  EXPECT_EQ(arena.mapped_bytes(), kMapping);
  arena.GiveBack(first, kHugePage / 2);
  arena.GiveBack(second, kHugePage / 2);
}

TEST(HugePageArena, AnArrayBeginsWithAPage) {
  HugePageArena arena;
  void* const odd = arena.Take(kPage + 1);
  void* const next = arena.Take(1);
  EXPECT_EQ(Address(next), Address(odd) + 2 * kPage);
  arena.GiveBack(odd, kPage + 1);
  arena.GiveBack(next, 1);
}

TEST(HugePageArena, WhatIsGivenBackIsTakenAgain) {
  HugePageArena arena;
  void* const first = arena.Take(3 * kPage);
  void* const second = arena.Take(3 * kPage);
  void* const third = arena.Take(3 * kPage);
  arena.GiveBack(first, 3 * kPage);
  arena.GiveBack(second, 3 * kPage);
  EXPECT_EQ(arena.Take(6 * kPage), first) << "neighbours are one range again";
  arena.GiveBack(third, 3 * kPage);
  EXPECT_EQ(arena.Take(kPage), third);
}

TEST(HugePageArena, AMappingThatNothingUsesGoesBack) {
  HugePageArena arena;
  void* const large = arena.Take(kMapping + 1);
  EXPECT_EQ(arena.mapped_bytes(), kMapping + kHugePage);
  void* const full = arena.Take(kMapping);
  EXPECT_EQ(arena.mapped_bytes(), 2 * kMapping + kHugePage);
  arena.GiveBack(large, kMapping + 1);
  EXPECT_EQ(arena.mapped_bytes(), kMapping);
  arena.GiveBack(full, kMapping);
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

TEST(HugePageArena, NoMemoryIsSaidAsNewSaysIt) {
  HugePageArena arena;
  EXPECT_THROW(arena.Take(SIZE_MAX), std::bad_alloc);
  EXPECT_THROW(arena.Take(size_t{1} << 60), std::bad_alloc);
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

// Mappings next to each other, which the system makes of those that follow each other, stay apart.
TEST(HugePageArena, ArraysNeverOverlap) {
  HugePageArena arena;
  struct Array {
    unsigned char* bytes;
    size_t size;
    unsigned char mark;
  };
  std::vector<Array> arrays;
  std::mt19937 random(1);
  for (int turn = 0; turn < 2000; ++turn) {
    if (arrays.size() < 60 && random() % 2 == 0) {
      const size_t size = 1 + random() % (random() % 8 == 0 ? 3 * kHugePage : 20 * kPage);
      const auto mark = static_cast<unsigned char>(random());
      auto* const bytes = static_cast<unsigned char*>(arena.Take(size));
      bytes[0] = bytes[size / 2] = bytes[size - 1] = mark;
      arrays.push_back({bytes, size, mark});
    } else if (!arrays.empty()) {
      std::swap(arrays[random() % arrays.size()], arrays.back());
      const auto [bytes, size, mark] = arrays.back();
      ASSERT_EQ(bytes[0], mark);
      ASSERT_EQ(bytes[size / 2], mark);
      ASSERT_EQ(bytes[size - 1], mark);
      arena.GiveBack(bytes, size);
      arrays.pop_back();
      for (const Array& other : arrays) {
        ASSERT_TRUE(other.bytes + other.size <= bytes || bytes + size <= other.bytes);
      }
    }
  }
  for (const auto& [bytes, size, mark] : arrays) arena.GiveBack(bytes, size);
  EXPECT_EQ(arena.mapped_bytes(), 0);
}

}  // namespace
}  // namespace thinwire

#include "kernels/pack_bits.h"

#include <random>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire::kernels {
namespace {

// Packs the codes bit by bit, in the layout that pack_bits.h defines.
std::vector<std::byte> PlainlyPacked(const std::vector<uint8_t>& codes, int bits) {
  std::vector<std::byte> packed(PackedBytes(codes.size(), bits));
  for (size_t i = 0; i < codes.size(); ++i) {
    for (int b = 0; b < bits; ++b) {
      if ((codes[i] >> b & 1) == 0) continue;
      const size_t bit = i / 8 * 8 * static_cast<size_t>(bits) + i % 8 * static_cast<size_t>(bits) +
                         static_cast<size_t>(b);
      packed[bit / 8] |= std::byte{1} << (bit % 8);
    }
  }
  return packed;
}

TEST(PackBitsTest, PacksAndUnpacksEveryWidthAndLength) {
  std::mt19937 random(1);
  for (int bits = 1; bits <= 8; ++bits) {
    for (size_t count = 0; count < 150; ++count) {
      std::vector<uint8_t> codes(count), back(count);
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() & ((1u << bits) - 1));
      std::vector<std::byte> packed(PackedBytes(count, bits));
      PackBits(codes, bits, packed.data());
      ASSERT_EQ(packed, PlainlyPacked(codes, bits)) << bits << " bits, " << count << " codes";
      UnpackBits(packed.data(), bits, back);
      ASSERT_EQ(back, codes) << bits << " bits, " << count << " codes";
    }
  }
}

TEST(PackBitsTest, AUnitHasOneBytePerBitOfACode) {
  EXPECT_EQ(PackedBytes(0, 3), 0u);
  EXPECT_EQ(PackedBytes(1, 3), 3u);
  EXPECT_EQ(PackedBytes(8, 3), 3u);
  EXPECT_EQ(PackedBytes(9, 3), 6u);
}

}  // namespace
}  // namespace thinwire::kernels

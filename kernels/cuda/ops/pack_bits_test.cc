#include "kernels/cuda/ops/pack_bits.h"

#include "kernels/cuda/ops/twin_cases.h"
#include "kernels/pack_bits.h"

namespace thinwire::kernels::cuda {
namespace {

using PackBitsTwinTest = CudaTest;

TEST_F(PackBitsTwinTest, PacksAndUnpacksLikeTheCpu) {
  std::mt19937 random(1);
  for (int bits = 1; bits <= 8; ++bits) {
    for (const size_t count : {0, 1, 7, 8, 9, 31, 33, 4095, 4096, 4097, 100'003}) {
      std::vector<uint8_t> codes(count);
      for (uint8_t& code : codes) code = static_cast<uint8_t>(random() % (1u << bits));
      std::vector<std::byte> want(PackedBytes(count, bits));
      kernels::PackBits(codes, bits, want.data());
      DeviceArray<uint8_t> device_codes(codes, stream_), unpacked(count, stream_);
      DeviceArray<std::byte> packed(want.size(), stream_, count % 2);
      Expect(PackBits(device_codes.span(), bits, packed.data(), stream_));
      ASSERT_EQ(packed.Read(), want) << count << " codes of " << bits << " bits";
      Expect(UnpackBits(packed.data(), bits, unpacked.span(), stream_));
      ASSERT_EQ(unpacked.Read(), codes) << count << " codes of " << bits << " bits";
    }
  }
}

}  // namespace
}  // namespace thinwire::kernels::cuda

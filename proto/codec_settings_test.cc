#include "proto/codec_settings.h"

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(CodecSettingsTest, AConfigurationThatSaysNothingMeansTheDefaults) {
  CodecSpec spec = {.id = CodecId::kQsgd, .density = 0.5};
  const CodecSpec before = spec;
  ASSERT_TRUE(SetCodecSettings(Compression(), spec).ok());
  EXPECT_EQ(spec, before);
}

TEST(CodecSettingsTest, EverySettingArrives) {
  Compression compression;
  compression.set_topk_indices("golomb_rice");
  compression.set_topk_least(16);
  compression.set_twobit_threshold(0.25);
  compression.set_qsgd_levels(15);
  compression.set_onebit_group(64);
  CodecSpec spec;
  ASSERT_TRUE(SetCodecSettings(compression, spec).ok());
  EXPECT_EQ(spec, (CodecSpec{.least_sent = 16,
                             .indices = IndexCoder::kGolombRice,
                             .twobit_threshold = 0.25,
                             .qsgd_levels = 15,
                             .onebit_group = 64}));
  compression.set_topk_indices("varint");
  EXPECT_EQ(SetCodecSettings(compression, spec).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace thinwire

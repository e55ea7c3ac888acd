#include "proto/codec_settings.h"

namespace thinwire {

absl::Status SetCodecSettings(const Compression& compression, CodecSpec& spec) {
  const absl::StatusOr<IndexCoder> indices = ParseIndexCoder(compression.topk_indices());
  if (!indices.ok()) return indices.status();
  spec.indices = *indices;
  spec.least_sent = compression.topk_least();
  spec.twobit_threshold = compression.twobit_threshold();
  spec.qsgd_levels = compression.qsgd_levels();
  spec.onebit_group = compression.onebit_group();
  return absl::OkStatus();
}

}  // namespace thinwire

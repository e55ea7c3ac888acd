#include "cli/masters_sum.h"

#include <span>

#include "absl/strings/str_cat.h"
#include "common/crc32c.h"

namespace thinwire {

absl::Status MastersSum::Add(const MastersChunk& chunk) {
  if (chunk.values().size() % sizeof(float) != 0) {
    return absl::InvalidArgumentError(absl::StrCat("masters of ", chunk.tensor(),
                                                   ": want whole values, got ",
                                                   chunk.values().size(), " bytes"));
  }
  tensors_[chunk.tensor()].emplace(chunk.offset(), chunk.values());
  value_count_ += chunk.values().size() / sizeof(float);
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> MastersSum::Crc32c() const {
  uint32_t crc = 0;
  for (const auto& [tensor, pieces] : tensors_) {
    uint64_t next = 0;
    for (const auto& [offset, bytes] : pieces) {
      if (offset != next) {
        return absl::DataLossError(
            absl::StrCat("masters of ", tensor, ": want values from ", next, ", got ", offset));
      }
      crc = thinwire::Crc32c(std::as_bytes(std::span(bytes)), crc);
      next += bytes.size() / sizeof(float);
    }
  }
  return crc;
}

}  // namespace thinwire

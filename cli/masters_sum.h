// MastersSum: the checksum of a whole model out of the pieces that servers send in any order.
//
//   CRC-32C of every tensor's values, fp32 little-endian and row-major, the tensors in the order of
//   their names
#ifndef THINWIRE_CLI_MASTERS_SUM_H_
#define THINWIRE_CLI_MASTERS_SUM_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/control.pb.h"

namespace thinwire {

// Not thread-safe.
class MastersSum {
 public:
  // Errors: InvalidArgument for values that are no whole number of fp32.
  absl::Status Add(const MastersChunk& chunk);

  uint64_t value_count() const { return value_count_; }
  // Errors: DataLoss if pieces overlap or leave a hole, with the tensor and the place.
  absl::StatusOr<uint32_t> Crc32c() const;

 private:
  std::map<std::string, std::multimap<uint64_t, std::string>>
      tensors_;  // offset in values -> bytes
  uint64_t value_count_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_MASTERS_SUM_H_

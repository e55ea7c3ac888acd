// SummaryWriter writes an event file, which TensorBoard shows as charts.
//
//   file     events.out.tfevents.SECONDS.HOST.PROCESS in a folder; TensorBoard calls the folder a run
//   record   length (8 bytes) | checksum of the length | TensorBoardEvent | checksum of the event
//
// Numbers are little-endian. A checksum is a CRC-32C, rotated and shifted by a constant, because
// CRCs of data that contain CRCs are weak (TFRecord format: tensorflow/core/lib/hash/crc32c.h).
#ifndef THINWIRE_ADMIN_SUMMARY_WRITER_H_
#define THINWIRE_ADMIN_SUMMARY_WRITER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/files/atomic_file.h"
#include "common/time/clock.h"
#include "proto/tensorboard_event.pb.h"

namespace thinwire {

struct Scalar {
  std::string tag;  // such as "train/loss"
  double value = 0;
};

// Returns the bytes of a record with the content EVENT.
std::string EventRecord(std::string_view event);

// Not thread-safe.
class SummaryWriter {
 public:
  // Makes FOLDER, if it does not exist, and begins a file in it. The time of CLOCK counts from the
  // Unix epoch; CLOCK must outlive the writer. Errors: those of the file system, with the path.
  static absl::StatusOr<std::unique_ptr<SummaryWriter>> Create(const std::string& folder,
                                                               Clock& clock);

  // Add values at STEP. A histogram maps each value to the number of its occurrences.
  void AddScalars(uint64_t step, std::span<const Scalar> scalars);
  void AddHistogram(uint64_t step, const std::string& tag,
                    const std::map<uint64_t, uint64_t>& histogram);
  // Passes all values to the system. Returns the first error so far; after an error, nothing is
  // written.
  absl::Status Flush();

 private:
  SummaryWriter(std::string path, OwnedFile file, Clock& clock)
      : path_(std::move(path)), file_(std::move(file)), clock_(clock) {}

  void Write(uint64_t step, TensorBoardEvent event);

  const std::string path_;
  const OwnedFile file_;
  Clock& clock_;
  absl::Status status_;
};

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_SUMMARY_WRITER_H_

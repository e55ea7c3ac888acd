#include "tests/simulation/log_writer.h"

#include <array>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/status_macros.h"
#include "server/durable/log_format.h"

namespace thinwire::simulation {
namespace {

// Small, so that a log has several segments.
constexpr uint64_t kSegmentBytes = 4096;

}  // namespace

absl::StatusOr<std::unique_ptr<LogWriter>> LogWriter::Open(Files& files, std::string folder,
                                                           LogSequence first) {
  std::unique_ptr<LogWriter> log(new LogWriter(files, std::move(folder), first));
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(log->folder_));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, "log-") && absl::EndsWith(name, ".tmp")) {
      RETURN_IF_ERROR(files.Remove(absl::StrCat(log->folder_, "/", name)));
    }
    const std::optional<LogSequence> segment = ParseSegmentName(name);
    // A segment that begins at FIRST has no records. BeginSegment replaces it.
    if (segment.has_value() && *segment < first) log->segments_.push_back(*segment);
  }
  RETURN_IF_ERROR(log->BeginSegment());
  return log;
}

absl::Status LogWriter::BeginSegment() {
  const std::string path = absl::StrCat(folder_, "/", SegmentName(next_));
  const std::string unfinished = path + ".tmp";
  const auto header = SegmentHeader(next_);
  ASSIGN_OR_RETURN(segment_, files_.Create(unfinished));
  RETURN_IF_ERROR(segment_->Append(ByteChain(std::vector(header.begin(), header.end()))));
  RETURN_IF_ERROR(segment_->Sync());
  RETURN_IF_ERROR(files_.Rename(unfinished, path));
  RETURN_IF_ERROR(files_.SyncFolder(folder_));
  segments_.push_back(next_);
  segment_bytes_ = header.size();
  return absl::OkStatus();
}

LogSequence LogWriter::Append(ByteChain record, Done done) {
  queued_.push_back({std::move(record), std::move(done)});
  return next_ + queued_.size() - 1;
}

absl::Status LogWriter::Write() {
  const LogSequence commit = next_;
  ByteChain bytes;
  for (const Entry& entry : queued_) {
    std::vector<std::byte> header(kRecordHeaderBytes);
    WriteRecordHeader({.length = static_cast<uint32_t>(entry.record.size()),
                       .checksum = Checksum(entry.record),
                       .sequence = next_++,
                       .commit = commit},
                      std::span<std::byte, kRecordHeaderBytes>(header));
    bytes.Append(ByteChain(std::move(header)));
    bytes.Append(entry.record);
  }
  written_ = std::exchange(queued_, {});
  segment_bytes_ += bytes.size();
  return segment_->Append(bytes);
}

absl::Status LogWriter::Flush() {
  RETURN_IF_ERROR(segment_->Sync());
  const std::vector<Entry> flushed = std::exchange(written_, {});
  for (const Entry& entry : flushed) entry.done(++durable_);
  if (segment_bytes_ < kSegmentBytes) return absl::OkStatus();
  return BeginSegment();
}

absl::Status LogWriter::RemoveBefore(LogSequence first) {
  while (segments_.size() > 1 && segments_[1] <= first) {
    RETURN_IF_ERROR(files_.Remove(absl::StrCat(folder_, "/", SegmentName(segments_[0]))));
    segments_.erase(segments_.begin());
  }
  return absl::OkStatus();
}

}  // namespace thinwire::simulation

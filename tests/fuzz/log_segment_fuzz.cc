// A libFuzzer target for ReplayLog (server/durable/event_log.h). A replay of a damaged log delivers
// consecutive records or refuses the log. A log that was replayed once is replayed again with the
// same records, and goes on.
//
//   input = options | bytes of the first segment after its header
//
//   options bit 0    a second segment follows
//           bit 1    the segment header is part of the input
//           bit 2    the checksums of the input are replaced by correct ones
#include <glog/logging.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "common/time/thread_executor.h"
#include "server/durable/event_log.h"
#include "server/durable/files.h"
#include "server/durable/log_format.h"
#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

constexpr char kFolder[] = "log";

// Corrects the checksums of the records at the beginning of BYTES, one after the other.
void CorrectChecksums(std::span<std::byte> bytes) {
  while (bytes.size() >= kRecordHeaderBytes) {
    RecordHeader header;
    std::memcpy(&header.length, bytes.data(), sizeof(header.length));
    std::memcpy(&header.sequence, bytes.data() + 8, sizeof(header.sequence));
    std::memcpy(&header.commit, bytes.data() + 16, sizeof(header.commit));
    const auto body = bytes.subspan(kRecordHeaderBytes);
    if (header.length > body.size()) return;
    header.checksum = Checksum(ByteChain(body.first(header.length), nullptr));
    WriteRecordHeader(header, bytes.first<kRecordHeaderBytes>());
    bytes = body.subspan(header.length);
  }
}

void AddSegment(FaultyFiles& files, LogSequence first, const std::vector<std::byte>& bytes) {
  const std::string path = std::string(kFolder) + "/" + SegmentName(first);
  if (!files.Create(path).ok()) abort();
  files.SetBytes(path, bytes);
}

// Returns all records of the log, or nothing if it is refused. Sets NEXT to the sequence after the
// last record.
std::vector<ByteChain> Replay(FaultyFiles& files, LogSequence& next) {
  std::vector<ByteChain> records;
  const auto end = ReplayLog(files, kFolder, 1, [&](LogSequence sequence, const ByteChain& record) {
    records.push_back(record);
    if (sequence != records.size()) abort();
    return absl::OkStatus();
  });
  if (!end.ok() && end.status().code() != absl::StatusCode::kDataLoss) abort();
  if (end.ok() && *end != records.size() + 1) abort();
  next = end.ok() ? *end : 0;
  return records;
}

void Check(uint8_t options, std::span<const std::byte> input) {
  std::vector<std::byte> segment;
  if ((options & 2) == 0) {
    const auto header = SegmentHeader(1);
    segment.assign(header.begin(), header.end());
  }
  const size_t records_at = kSegmentHeaderBytes;
  segment.insert(segment.end(), input.begin(), input.end());
  if ((options & 4) != 0 && segment.size() > records_at) {
    CorrectChecksums(std::span(segment).subspan(records_at));
  }
  FaultyFiles files;
  if (!files.MakeFolder(kFolder).ok()) abort();
  AddSegment(files, 1, segment);
  if ((options & 1) != 0) {
    const auto header = SegmentHeader(2);
    AddSegment(files, 2, {header.begin(), header.end()});
  }
  LogSequence next = 0, again = 0;
  const std::vector<ByteChain> records = Replay(files, next);
  if (next == 0) return;
  if (Replay(files, again) != records || again != next) abort();
  Threads threads;
  auto log = EventLog::Open(files, {.folder = kFolder}, threads.Make(), next,
                            [](const absl::Status&) { abort(); });
  if (!log.ok()) abort();
  (*log)->Append(ByteChain(), [&](LogSequence sequence) {
    if (sequence != next) abort();
  });
  log->reset();
  if (Replay(files, again).size() != records.size() + 1) abort();
}

}  // namespace
}  // namespace thinwire

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FLAGS_minloglevel = google::ERROR;  // cut commits are warnings
  if (size == 0) return 0;
  thinwire::Check(data[0], std::as_bytes(std::span(data, size)).subspan(1));
  return 0;
}

#include "server/durable/event_log.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "server/durable/log_format.h"

namespace thinwire {
namespace {

constexpr absl::string_view kUnfinishedSuffix = ".tmp";

std::string SegmentPath(const std::string& folder, LogSequence first) {
  return absl::StrCat(folder, "/", SegmentName(first));
}

// Returns the first records of all segments in FOLDER, ascending.
absl::StatusOr<std::vector<LogSequence>> ListSegments(Files& files, const std::string& folder) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(folder));
  std::vector<LogSequence> segments;
  for (const std::string& name : names) {
    if (const auto first = ParseSegmentName(name)) segments.push_back(*first);
  }
  return segments;
}

}  // namespace

struct EventLog::State {
  struct Entry {
    ByteChain record;
    std::function<void(LogSequence)> done;
  };

  // Removes the files of unfinished segments, and begins the segment of the record `next`.
  absl::Status Open();
  // Begins the segment of the record `next`. Its name appears together with its complete header, so
  // a crash leaves no segment without a header.
  absl::Status BeginSegment();
  // Calls Write() on the log's thread, unless a call is due.
  void PostWrite() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu);
  // Makes all queued records durable.
  void Write();
  // Makes the records of BATCH durable.
  absl::Status Commit(const std::vector<Entry>& batch);
  // Calls DONE of the records of BATCH and releases their memory.
  void Finish(std::vector<Entry>& batch);
  void Fail(const absl::Status& status);
  void RemoveSegmentsBefore(LogSequence first);

  Files& files;
  const EventLogOptions options;
  const std::function<void(const absl::Status&)> on_failure;

  // After Open, only the log's thread uses these variables.
  LogSequence next;                   // the record that is written next
  std::vector<LogSequence> segments;  // the first records of all segments; the last is in use
  std::unique_ptr<WritableFile> segment;
  uint64_t segment_bytes = 0;

  mutable absl::Mutex mu;
  bool write_is_due ABSL_GUARDED_BY(mu) = false;
  bool ended ABSL_GUARDED_BY(mu) = false;  // failed or closed: later records are dropped
  std::vector<Entry> queue ABSL_GUARDED_BY(mu);
  LogSequence durable ABSL_GUARDED_BY(mu) = 0;  // the newest record whose DONE has returned
  LogSequence remove_before ABSL_GUARDED_BY(mu) = 0;
  Counts counts ABSL_GUARDED_BY(mu);

  const std::unique_ptr<Executor> executor;  // last, because its tasks use the members above
};

absl::Status EventLog::State::Open() {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, files.List(options.folder));
  for (const std::string& name : names) {
    const absl::string_view stem = absl::StripSuffix(name, kUnfinishedSuffix);
    if (stem.size() < name.size() && ParseSegmentName({stem.data(), stem.size()})) {
      RETURN_IF_ERROR(files.Remove(absl::StrCat(options.folder, "/", name)));
    }
  }
  ASSIGN_OR_RETURN(segments, ListSegments(files, options.folder));
  if (!segments.empty() && segments.back() >= next) {
    // BeginSegment may replace a segment without records.
    const std::string path = SegmentPath(options.folder, segments.back());
    ASSIGN_OR_RETURN(const ByteChain bytes, files.Read(path));
    if (segments.back() > next || bytes.size() > kSegmentHeaderBytes) {
      return absl::AlreadyExistsError(
          absl::StrCat(path, ": the log has newer records (expected records before ", next, ")"));
    }
    segments.pop_back();
  }
  return BeginSegment();
}

absl::Status EventLog::State::BeginSegment() {
  const std::string path = SegmentPath(options.folder, next);
  const std::string unfinished = absl::StrCat(path, kUnfinishedSuffix);
  const auto header = SegmentHeader(next);
  ASSIGN_OR_RETURN(segment, files.Create(unfinished));
  RETURN_IF_ERROR(segment->Append(ByteChain(header, nullptr)));
  RETURN_IF_ERROR(segment->Sync());
  RETURN_IF_ERROR(files.Rename(unfinished, path));
  segment->SetPath(path);
  RETURN_IF_ERROR(files.SyncFolder(options.folder));
  segments.push_back(next);
  segment_bytes = header.size();
  return absl::OkStatus();
}

void EventLog::State::PostWrite() {
  if (!std::exchange(write_is_due, true)) executor->Post([this] { Write(); });
}

void EventLog::State::Write() {
  std::vector<Entry> batch;
  LogSequence remove = 0;
  {
    absl::MutexLock lock(&mu);
    write_is_due = false;
    batch.swap(queue);
    remove = std::exchange(remove_before, 0);
  }
  if (!batch.empty()) {
    if (const absl::Status status = Commit(batch); !status.ok()) return Fail(status);
    Finish(batch);
    if (segment_bytes >= options.segment_bytes) {
      if (const absl::Status status = BeginSegment(); !status.ok()) return Fail(status);
    }
  }
  RemoveSegmentsBefore(remove);
}

absl::Status EventLog::State::Commit(const std::vector<Entry>& batch) {
  const TraceSpan span(options.tracer, "event log", "commit");
  std::vector<std::byte> headers(batch.size() * kRecordHeaderBytes);
  std::span<std::byte> unused = headers;
  ByteChain bytes;
  LogSequence sequence = next;
  for (const Entry& entry : batch) {
    const auto header = unused.first<kRecordHeaderBytes>();
    unused = unused.subspan(kRecordHeaderBytes);
    WriteRecordHeader({.length = static_cast<uint32_t>(entry.record.size()),
                       .checksum = Checksum(entry.record),
                       .sequence = sequence++,
                       .commit = next},
                      header);
    bytes.Append(header, nullptr);
    bytes.Append(entry.record);
  }
  RETURN_IF_ERROR(segment->Append(bytes));
  RETURN_IF_ERROR(segment->Sync());
  segment_bytes += bytes.size();
  absl::MutexLock lock(&mu);
  counts.records += batch.size();
  counts.bytes += bytes.size();
  ++counts.commits;
  return absl::OkStatus();
}

void EventLog::State::Finish(std::vector<Entry>& batch) {
  for (Entry& entry : batch) {
    entry.done(next++);
    entry = Entry();
  }
  batch.clear();
  absl::MutexLock lock(&mu);
  durable = next - 1;
}

void EventLog::State::Fail(const absl::Status& status) {
  std::vector<Entry> dropped;  // destroyed without the lock
  {
    absl::MutexLock lock(&mu);
    ended = true;
    dropped.swap(queue);
  }
  on_failure(status);
}

void EventLog::State::RemoveSegmentsBefore(LogSequence first) {
  while (segments.size() >= 2 && segments[1] <= first) {
    const absl::Status status = files.Remove(SegmentPath(options.folder, segments[0]));
    if (!status.ok()) LOG(WARNING) << "event log: cannot remove an old segment: " << status;
    segments.erase(segments.begin());
  }
}

absl::StatusOr<std::unique_ptr<EventLog>> EventLog::Open(
    Files& files, EventLogOptions options, std::unique_ptr<Executor> executor, LogSequence first,
    std::function<void(const absl::Status&)> on_failure) {
  auto state = std::unique_ptr<State>(new State{.files = files,
                                                .options = std::move(options),
                                                .on_failure = std::move(on_failure),
                                                .next = first,
                                                .durable = first - 1,
                                                .executor = std::move(executor)});
  RETURN_IF_ERROR(state->Open());
  return std::unique_ptr<EventLog>(new EventLog(std::move(state)));
}

EventLog::EventLog(std::unique_ptr<State> state) : state_(std::move(state)) {}

EventLog::~EventLog() { Close(); }

void EventLog::Close() {
  state_->executor->Finish();
  absl::MutexLock lock(&state_->mu);
  state_->ended = true;
}

void EventLog::Append(ByteChain record, std::function<void(LogSequence)> done) {
  absl::MutexLock lock(&state_->mu);
  if (state_->ended) return;
  state_->queue.push_back({std::move(record), std::move(done)});
  state_->PostWrite();
}

void EventLog::Flush() {
  state_->executor->Run([] {});
}

LogSequence EventLog::durable() const {
  absl::MutexLock lock(&state_->mu);
  return state_->durable;
}

void EventLog::RemoveBefore(LogSequence first) {
  absl::MutexLock lock(&state_->mu);
  if (state_->ended) return;
  state_->remove_before = std::max(state_->remove_before, first);
  state_->PostWrite();
}

EventLog::Counts EventLog::counts() const {
  absl::MutexLock lock(&state_->mu);
  return state_->counts;
}

namespace {

using ApplyRecord = std::function<absl::Status(LogSequence, const ByteChain& record)>;

// The records of one segment, in order. The position is that of a record or the end of the segment.
class SegmentReader {
 public:
  SegmentReader(ByteChain segment, LogSequence first)
      : segment_(std::move(segment)),
        bytes_(segment_.Contiguous(scratch_)),
        position_(kSegmentHeaderBytes),
        sequence_(first) {}

  absl::Status CheckHeader() const { return CheckSegmentHeader(bytes_, sequence_); }
  bool AtEnd() const { return position_ >= bytes_.size(); }
  size_t position() const { return position_; }
  size_t remaining_bytes() const { return bytes_.size() - position_; }
  LogSequence sequence() const { return sequence_; }

  // Returns the record at the position. Errors: DataLoss with the cause.
  absl::StatusOr<ByteChain> Read() const {
    const auto header = ParseRecordHeader(Remaining());
    if (!header.has_value()) return absl::DataLossError("incomplete header or wrong checksum");
    if (header->sequence != sequence_) {
      return absl::DataLossError(absl::StrCat("wrong sequence (got ", header->sequence, ")"));
    }
    const size_t most_bytes = remaining_bytes() - kRecordHeaderBytes;
    if (header->length > most_bytes) {
      return absl::DataLossError(
          absl::StrCat("incomplete (expected ", header->length, " bytes, got ", most_bytes, ")"));
    }
    ByteChain record = segment_.Sub(position_ + kRecordHeaderBytes, header->length);
    if (Checksum(record) == header->checksum) return record;
    return absl::DataLossError("wrong checksum");
  }

  // Moves past RECORD, the result of Read().
  void Skip(const ByteChain& record) {
    position_ += kRecordHeaderBytes + record.size();
    ++sequence_;
  }

  // Returns whether the record at the position, which is damaged, was once flushed: a later record
  // says so in its header.
  bool WasFlushed() const {
    const auto header = ParseRecordHeader(Remaining());
    // The header of this record, if intact, tells where its bytes end. They come from a peer and
    // could look like a header.
    const bool intact = header.has_value() && header->sequence == sequence_;
    const size_t skipped = intact ? kRecordHeaderBytes + size_t{header->length} : 0;
    return skipped < remaining_bytes() && HasLaterCommit(Remaining().subspan(skipped), sequence_);
  }

 private:
  std::span<const std::byte> Remaining() const { return bytes_.subspan(position_); }

  const ByteChain segment_;
  std::vector<std::byte> scratch_;
  const std::span<const std::byte> bytes_;
  size_t position_;
  LogSequence sequence_;
};

absl::Status WithPlace(const std::string& path, const SegmentReader& reader,
                       const absl::Status& status) {
  return absl::Status(status.code(), absl::StrCat(path, ": record ", reader.sequence(), " at byte ",
                                                  reader.position(), ": ", status.message()));
}

// Makes the records before the position of READER durable: a process that ended before it flushed
// them has left them in the memory of the system only. Cuts the bytes from the position on.
absl::Status CutAndFlush(Files& files, const std::string& path, const SegmentReader& reader) {
  if (!reader.AtEnd()) {
    LOG(WARNING) << path << ": cut " << reader.remaining_bytes() << " bytes of an incomplete commit"
                 << " at byte " << reader.position();
  }
  return files.Truncate(path, reader.position());
}

// Applies the records of the segment PATH from FIRST on. Returns the sequence after its last
// record.
absl::StatusOr<LogSequence> ReplaySegment(Files& files, const std::string& path,
                                          LogSequence first_of_segment, bool is_last,
                                          LogSequence first, const ApplyRecord& apply) {
  ASSIGN_OR_RETURN(ByteChain segment, files.Read(path));
  SegmentReader reader(std::move(segment), first_of_segment);
  if (const absl::Status status = reader.CheckHeader(); !status.ok()) {
    return absl::DataLossError(absl::StrCat(path, ": ", status.message()));
  }
  while (!reader.AtEnd()) {
    const absl::StatusOr<ByteChain> record = reader.Read();
    if (!record.ok()) {
      if (is_last && !reader.WasFlushed()) break;
      return WithPlace(path, reader, record.status());
    }
    if (reader.sequence() >= first) {
      if (const absl::Status status = apply(reader.sequence(), *record); !status.ok()) {
        return WithPlace(path, reader, status);
      }
    }
    reader.Skip(*record);
  }
  if (is_last) RETURN_IF_ERROR(CutAndFlush(files, path, reader));
  return reader.sequence();
}

absl::Status MissingRecord(const std::string& folder, LogSequence sequence) {
  return absl::DataLossError(absl::StrCat(folder, ": no segment with record ", sequence));
}

}  // namespace

absl::StatusOr<LogSequence> ReplayLog(Files& files, const std::string& folder, LogSequence first,
                                      const ApplyRecord& apply) {
  ASSIGN_OR_RETURN(const std::vector<LogSequence> segments, ListSegments(files, folder));
  if (segments.empty() && first == 1) return first;
  // The first segment to replay is the last one that begins at or before FIRST. Older segments may
  // remain after a crash.
  auto segment = std::ranges::upper_bound(segments, first);
  if (segment == segments.begin()) return MissingRecord(folder, first);
  LogSequence next = *--segment;
  for (; segment != segments.end(); ++segment) {
    if (*segment != next) return MissingRecord(folder, next);
    const bool is_last = segment + 1 == segments.end();
    ASSIGN_OR_RETURN(
        next, ReplaySegment(files, SegmentPath(folder, *segment), *segment, is_last, first, apply));
  }
  if (next < first) return MissingRecord(folder, first - 1);
  return next;
}

}  // namespace thinwire

#include "server/durable/event_log.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/status_macros.h"
#include "common/time/thread_executor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/durable/log_format.h"
#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kFolder[] = "log";

// Returns a record with the bytes of TEXT in two pieces.
ByteChain Record(const std::string& text) {
  const auto bytes = std::as_bytes(std::span(text));
  const auto half = bytes.first(bytes.size() / 2), rest = bytes.subspan(bytes.size() / 2);
  ByteChain record(std::vector<std::byte>(half.begin(), half.end()));
  record.Append(ByteChain(std::vector<std::byte>(rest.begin(), rest.end())));
  return record;
}

std::string TextOf(const ByteChain& record) {
  const std::vector<std::byte> bytes = record.ToVector();
  return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

using Texts = std::map<LogSequence, std::string>;

// Returns all records of the log from FIRST on. Sets NEXT, unless it is null, to the sequence after
// the last one.
absl::StatusOr<Texts> Replay(Files& files, LogSequence first = 1, LogSequence* next = nullptr,
                             const std::string& folder = kFolder) {
  Texts texts;
  ASSIGN_OR_RETURN(
      const LogSequence end,
      ReplayLog(files, folder, first, [&](LogSequence sequence, const ByteChain& record) {
        texts[sequence] = TextOf(record);
        return absl::OkStatus();
      }));
  if (next != nullptr) *next = end;
  return texts;
}

std::unique_ptr<Executor> NewThread() {
  static Threads threads;
  return threads.Make();
}

void ExpectNoFailure(const absl::Status& status) { ADD_FAILURE() << status; }

std::unique_ptr<EventLog> OpenLog(Files& files, LogSequence first, uint64_t segment_bytes = 1 << 20,
                                  const std::string& folder = kFolder) {
  EXPECT_TRUE(files.MakeFolder(folder).ok());
  auto log = EventLog::Open(files, {folder, segment_bytes}, NewThread(), first, ExpectNoFailure);
  EXPECT_TRUE(log.ok()) << log.status();
  return *std::move(log);
}

// One log and its records, over several starts of a process. A record's text tells its sequence and
// the start that wrote it.
class LogHistory {
 public:
  explicit LogHistory(uint64_t seed) : files_(seed) {}

  FaultyFiles& files() { return files_; }

  // Starts a process: replays the log, checks the records, and appends further records in several
  // commits. Returns true if all records became durable, false after a failure.
  bool Run() {
    ++start_;
    // The root folder stands for the folder of the server, which it makes durable.
    if (!files_.MakeFolder(kFolder).ok() || !files_.SyncFolder("").ok()) return false;
    LogSequence next = 0;
    const absl::StatusOr<Texts> found = Replay(files_, first_, &next);
    if (!found.ok()) {
      EXPECT_TRUE(FileSystemFailed(found.status())) << found.status();
      return false;
    }
    CheckRecords(*found, next);
    auto log = EventLog::Open(files_, {kFolder, /*segment_bytes=*/400}, NewThread(), next,
                              [&](const absl::Status& status) {
                                EXPECT_TRUE(FileSystemFailed(status)) << status;
                                ++failure_count_;
                                Finish();
                              });
    if (!log.ok()) {
      EXPECT_TRUE(FileSystemFailed(log.status())) << log.status();
      return false;
    }
    next_ = next;
    durable_ = next - 1;
    failure_count_ = 0;
    finished_.emplace();
    AppendCommit(**log, 0);
    finished_->WaitForNotification();
    log->reset();
    EXPECT_LE(failure_count_, 1);
    return failure_count_ == 0 && !files_.crashed();
  }

  LogSequence durable() const { return durable_; }

 private:
  static bool FileSystemFailed(const absl::Status& status) {
    return absl::IsUnavailable(status) || absl::IsResourceExhausted(status) ||
           absl::StrContains(status.message(), "cannot flush");
  }

  // Runs on the log's thread.
  void Finish() {
    if (!finished_->HasBeenNotified()) finished_->Notify();
  }

  // Every record whose DONE was called is there, and no record is there that was not appended.
  void CheckRecords(const Texts& found, LogSequence next) {
    EXPECT_GT(next, durable_);
    texts_.erase(texts_.lower_bound(next), texts_.end());
    EXPECT_EQ(next, texts_.empty() ? LogSequence{1} : texts_.rbegin()->first + 1);
    Texts expected = texts_;
    expected.erase(expected.begin(), expected.lower_bound(first_));
    EXPECT_EQ(found, expected);
  }

  // Appends the records of a commit. The DONE of its last record appends the next commit, so that
  // the number of records of each commit is the same in every run.
  void AppendCommit(EventLog& log, size_t commit) {
    static constexpr int kRecordCounts[] = {1, 3, 1, 5, 2};
    if (commit == std::size(kRecordCounts)) return Finish();
    for (int i = 0; i < kRecordCounts[commit]; ++i) {
      const LogSequence sequence = next_++;
      texts_[sequence] = absl::StrCat("record ", sequence, " of start ", start_, " ",
                                      std::string(sequence * 37 % 90, 'x'));
      const bool is_last = i + 1 == kRecordCounts[commit];
      log.Append(Record(texts_[sequence]),
                 [this, &log, commit, sequence, is_last](LogSequence got) {
                   EXPECT_EQ(got, sequence);
                   EXPECT_EQ(sequence, durable_ + 1);
                   durable_ = sequence;
                   if (commit == 3 && sequence > 8) {
                     first_ = sequence - 8;
                     log.RemoveBefore(first_);
                   }
                   if (is_last) AppendCommit(log, commit + 1);
                 });
    }
  }

  FaultyFiles files_;
  int start_ = 0;
  LogSequence first_ = 1;
  LogSequence durable_ = 0;  // the last record whose DONE was called
  LogSequence next_ = 1;
  Texts texts_;  // the appended records
  int failure_count_ = 0;
  std::optional<absl::Notification> finished_;
};

TEST(EventLog, Promise5ACrashAtEveryFileOperationLeavesAValidLog) {
  constexpr uint64_t kSeeds = 100;
  uint64_t crash_count = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    for (uint64_t operation = 1;; ++operation) {
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", crash at operation ", operation));
      LogHistory history(1000 * seed + operation);
      history.files().CrashAt(operation);
      if (history.Run()) break;
      ASSERT_TRUE(history.files().crashed());
      ++crash_count;
      operation % 2 == 0 ? history.files().Restart() : history.files().RestartProcess();
      // A second crash hits the recovery from the first one or the records after it.
      history.files().CrashAt(1 + (seed + operation) % 25);
      history.Run();
      history.files().Restart();
      const LogSequence durable = history.durable();
      ASSERT_TRUE(history.Run());
      ASSERT_GE(history.durable(), durable + 12);
      history.files().Restart();
      ASSERT_TRUE(history.Run());
      ASSERT_FALSE(HasFailure());
    }
  }
  EXPECT_GT(crash_count, 20 * kSeeds);
}

TEST(EventLog, AfterAFailedFlushNoRecordIsDoneAndTheNextStartIsValid) {
  int failure_count = 0;
  for (uint64_t flush = 1;; ++flush) {
    SCOPED_TRACE(absl::StrCat("flush ", flush));
    LogHistory history(flush);
    history.files().FailFlushAt(flush);
    if (history.Run()) break;
    ++failure_count;
    history.files().Restart();
    ASSERT_TRUE(history.Run());
    history.files().Restart();
    ASSERT_TRUE(history.Run());
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(failure_count, 10);
}

TEST(EventLog, AFullDiskLosesNoDoneRecord) {
  int failure_count = 0;
  for (uint64_t free_bytes = 0;; free_bytes += 5) {
    SCOPED_TRACE(absl::StrCat(free_bytes, " free bytes"));
    LogHistory history(free_bytes);
    history.files().SetFreeBytes(free_bytes);
    if (history.Run()) break;
    ++failure_count;
    history.files().SetFreeBytes(1 << 20);
    history.files().RestartProcess();
    ASSERT_TRUE(history.Run());
    history.files().Restart();
    ASSERT_TRUE(history.Run());
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(failure_count, 100);
}

TEST(EventLog, AnErrorNamesTheSegment) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder(kFolder).ok());
  absl::Status failure;
  auto log = EventLog::Open(files, {.folder = kFolder}, NewThread(), 1,
                            [&failure](const absl::Status& status) { failure = status; })
                 .value();
  files.SetFreeBytes(0);
  log->Append(Record("lost"), [](LogSequence) {});
  log->Flush();
  log.reset();
  EXPECT_EQ(failure.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(failure.message().find(absl::StrCat(kFolder, "/log-00000000000000000001: ")), 0u)
      << failure;
}

TEST(EventLog, RecordsThatAnEndedProcessDidNotFlushAreDurableAfterTheReplay) {
  int replayed_count = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    FaultyFiles files(seed);
    ASSERT_TRUE(files.MakeFolder(kFolder).ok());
    ASSERT_TRUE(files.SyncFolder("").ok());
    absl::Notification failed;
    auto ending = EventLog::Open(files, {kFolder}, NewThread(), 1,
                                 [&](const absl::Status&) { failed.Notify(); });
    ASSERT_TRUE(ending.ok()) << ending.status();
    files.BeforeSync([&] { files.Crash(); });  // the process ends between writing and flushing
    (*ending)->Append(Record("unflushed"), [](LogSequence) { ADD_FAILURE(); });
    failed.WaitForNotification();
    ending->reset();
    files.BeforeSync(nullptr);
    files.RestartProcess();

    LogSequence next = 0;
    ASSERT_TRUE(Replay(files, 1, &next).ok());
    ASSERT_EQ(next, 2u);
    auto log = OpenLog(files, next);
    log->Append(Record("flushed"), [](LogSequence) {});
    log.reset();
    files.Crash();
    files.Restart();
    const absl::StatusOr<Texts> found = Replay(files);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(*found, (Texts{{1, "unflushed"}, {2, "flushed"}}));
    ++replayed_count;
  }
  EXPECT_EQ(replayed_count, 50);
}

TEST(EventLog, RecordsThatQueueDuringAFlushShareTheNextFlush) {
  FaultyFiles files;
  auto log = OpenLog(files, 1);
  absl::Notification flushing, go_on;
  files.BeforeSync([&] {
    if (flushing.HasBeenNotified()) return;
    flushing.Notify();
    go_on.WaitForNotification();
  });
  std::vector<LogSequence> done;
  const auto append = [&](const std::string& text) {
    log->Append(Record(text), [&](LogSequence sequence) { done.push_back(sequence); });
  };
  append("first");
  flushing.WaitForNotification();
  for (int i = 0; i < 9; ++i) append(absl::StrCat("later ", i));
  absl::Notification last;
  log->Append(Record("last"), [&](LogSequence) { last.Notify(); });
  go_on.Notify();
  last.WaitForNotification();
  EXPECT_EQ(log->counts().records, 11u);
  EXPECT_EQ(log->counts().commits, 2u);
  EXPECT_EQ(log->counts().bytes, 11 * kRecordHeaderBytes + 5 + 9 * 7 + 4);
  log.reset();
  EXPECT_EQ(done.size(), 10u);
  EXPECT_TRUE(std::ranges::is_sorted(done));
}

TEST(EventLog, TheDestructorFlushesAllRecords) {
  FaultyFiles files;
  auto log = OpenLog(files, 1, /*segment_bytes=*/300);
  std::vector<LogSequence> done;
  for (int i = 1; i <= 100; ++i) {
    log->Append(Record(absl::StrCat("record ", i)),
                [&](LogSequence sequence) { done.push_back(sequence); });
  }
  log.reset();
  EXPECT_EQ(done.size(), 100u);
  const auto found = Replay(files, 98);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, (Texts{{98, "record 98"}, {99, "record 99"}, {100, "record 100"}}));
}

TEST(EventLog, RecordsOfManyThreadsKeepTheOrderOfEachThread) {
  constexpr int kThreads = 4, kRecords = 300;
  FaultyFiles files;
  auto log = OpenLog(files, 1, /*segment_bytes=*/2000);
  std::vector<LogSequence> done;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kRecords; ++i) {
        log->Append(Record(absl::StrCat(thread, " ", 1000 + i)),
                    [&](LogSequence sequence) { done.push_back(sequence); });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  log.reset();
  ASSERT_EQ(done.size(), size_t{kThreads * kRecords});
  for (size_t i = 0; i < done.size(); ++i) ASSERT_EQ(done[i], i + 1);
  const auto found = Replay(files);
  ASSERT_TRUE(found.ok()) << found.status();
  std::map<std::string, std::string> last;  // by thread
  for (const auto& [sequence, text] : *found) {
    std::string& before = last[text.substr(0, 1)];
    ASSERT_LT(before, text);
    before = text;
  }
  EXPECT_EQ(found->size(), done.size());
}

TEST(EventLog, TheMemoryOfARecordIsReleasedBeforeTheNextDone) {
  FaultyFiles files;
  auto log = OpenLog(files, 1);
  auto owner = std::make_shared<const std::vector<std::byte>>(100);
  const std::weak_ptr<const void> observer = owner;
  int check_count = 0;
  ByteChain record(*owner, owner);
  owner.reset();
  log->Append(std::move(record), [&](LogSequence) {
    log->Append(Record("next"), [&](LogSequence) {
      EXPECT_TRUE(observer.expired());
      ++check_count;
    });
  });
  absl::Notification done;
  log->Append(Record("last"), [&](LogSequence) { done.Notify(); });
  done.WaitForNotification();
  log.reset();
  EXPECT_EQ(check_count, 1);
}

TEST(EventLog, FlushWaitsForTheRecordsThatWereAppendedBefore) {
  FaultyFiles files;
  auto log = OpenLog(files, 1);
  log->Flush();
  EXPECT_EQ(log->durable(), 0u);
  LogSequence last = 0;
  for (int i = 0; i < 100; ++i) {
    log->Append(Record("text"), [&last](LogSequence sequence) { last = sequence; });
  }
  log->Flush();
  EXPECT_EQ(last, 100u);
  EXPECT_EQ(log->durable(), 100u);
}

TEST(EventLog, AFailureIsReportedOnceAndEndsFlush) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder(kFolder).ok());
  int failure_count = 0;
  absl::Notification failed;
  auto log =
      EventLog::Open(files, {.folder = kFolder}, NewThread(), 1, [&](const absl::Status& status) {
        EXPECT_THAT(std::string(status.message()), HasSubstr("cannot flush"));
        ++failure_count;
        failed.Notify();
      });
  ASSERT_TRUE(log.ok()) << log.status();
  files.FailFlushAt(1);
  absl::Notification flushing, go_on;
  files.BeforeSync([&] {
    flushing.Notify();
    go_on.WaitForNotification();
  });
  const auto never = [](LogSequence) { ADD_FAILURE() << "a lost record is done"; };
  (*log)->Append(Record("a record that is lost"), never);
  flushing.WaitForNotification();
  (*log)->Append(Record("a queued record"), never);
  go_on.Notify();
  (*log)->Flush();
  failed.WaitForNotification();
  (*log)->Append(Record("a later record"), never);
  (*log)->Flush();
  EXPECT_EQ((*log)->durable(), 0u);
  (*log)->RemoveBefore(1);
  EXPECT_EQ((*log)->counts().records, 0u);
  log->reset();
  EXPECT_EQ(failure_count, 1);
}

// Returns a log of ten records in segments of up to about three.
std::unique_ptr<EventLog> LogOfTenRecords(Files& files) {
  auto log =
      OpenLog(files, 1, /*segment_bytes=*/kSegmentHeaderBytes + 3 * (kRecordHeaderBytes + 5));
  for (int i = 0; i < 10; ++i) {
    absl::Notification done;  // makes each record a commit of its own
    log->Append(Record(absl::StrCat("text", i)), [&](LogSequence) { done.Notify(); });
    done.WaitForNotification();
  }
  return log;
}

TEST(EventLog, OldSegmentsAreRemovedButNotTheOneInUse) {
  FaultyFiles files;
  auto log = LogOfTenRecords(files);
  log->RemoveBefore(6);
  log.reset();
  EXPECT_THAT(files.List(kFolder).value(),
              ElementsAre(SegmentName(4), SegmentName(7), SegmentName(10)));
  EXPECT_EQ(Replay(files, 6).value().size(), 5u);
  EXPECT_EQ(Replay(files, 1).status().code(), absl::StatusCode::kDataLoss);
  log = OpenLog(files, 11);
  log->RemoveBefore(1000);
  log.reset();
  EXPECT_THAT(files.List(kFolder).value(), ElementsAre(SegmentName(11)));
  LogSequence next = 0;
  EXPECT_THAT(Replay(files, 11, &next).value(), IsEmpty());
  EXPECT_EQ(next, 11u);
}

TEST(EventLog, AnEmptyFolderIsAnEmptyLog) {
  FaultyFiles files;
  EXPECT_EQ(Replay(files).status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(files.MakeFolder(kFolder).ok());
  LogSequence next = 0;
  EXPECT_THAT(Replay(files, 1, &next).value(), IsEmpty());
  EXPECT_EQ(next, 1u);
  EXPECT_EQ(Replay(files, 2).status().code(), absl::StatusCode::kDataLoss);
}

TEST(EventLog, ALogDoesNotOverwriteNewerRecords) {
  FaultyFiles files;
  LogOfTenRecords(files);
  for (const LogSequence first : {1, 5, 10}) {
    const auto log = EventLog::Open(files, {kFolder}, NewThread(), first, ExpectNoFailure);
    EXPECT_EQ(log.status().code(), absl::StatusCode::kAlreadyExists) << first;
  }
  EXPECT_EQ(Replay(files).value().size(), 10u);
}

TEST(EventLog, AnUnfinishedSegmentIsRemoved) {
  FaultyFiles files;
  ASSERT_TRUE(files.MakeFolder(kFolder).ok());
  ASSERT_TRUE(files.Create(absl::StrCat(kFolder, "/", SegmentName(1), ".tmp")).ok());
  ASSERT_TRUE(files.Create(absl::StrCat(kFolder, "/", SegmentName(7), ".tmp")).ok());
  ASSERT_TRUE(files.Create(absl::StrCat(kFolder, "/other.tmp")).ok());
  EXPECT_THAT(Replay(files).value(), IsEmpty());
  OpenLog(files, 1);
  EXPECT_THAT(files.List(kFolder).value(), ElementsAre(SegmentName(1), "other.tmp"));
}

TEST(EventLog, TheErrorOfAnAppliedRecordNamesItsPlace) {
  FaultyFiles files;
  LogOfTenRecords(files);
  const auto end = ReplayLog(files, kFolder, 1, [](LogSequence sequence, const ByteChain&) {
    return sequence == 5 ? absl::DataLossError("shard 3: not on this server") : absl::OkStatus();
  });
  EXPECT_EQ(end.status(), absl::DataLossError("log/log-00000000000000000004: record 5 at byte 57: "
                                              "shard 3: not on this server"));
}

TEST(EventLog, AMissingSegmentIsDataLoss) {
  for (const LogSequence missing : {4, 7}) {
    FaultyFiles files;
    LogOfTenRecords(files);
    ASSERT_TRUE(files.Remove(absl::StrCat(kFolder, "/", SegmentName(missing))).ok());
    EXPECT_EQ(Replay(files).status(),
              absl::DataLossError(absl::StrCat("log: no segment with record ", missing)));
  }
}

TEST(EventLog, TheLogWorksOnTheFileSystemOfTheMachine) {
  const std::string folder = testing::TempDir() + "/event_log";
  std::filesystem::remove_all(folder);
  PosixFiles files;
  Texts expected;
  for (int start = 0; start < 3; ++start) {
    auto log = OpenLog(files, expected.size() + 1, /*segment_bytes=*/100'000, folder);
    for (int i = 0; i < 50; ++i) {
      const std::string text(expected.size() * 100, static_cast<char>('a' + start));
      expected[expected.size() + 1] = text;
      log->Append(Record(text), [](LogSequence) {});
    }
    log.reset();
    const auto found = Replay(files, 1, nullptr, folder);
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_EQ(*found, expected);
  }
  EXPECT_EQ(expected.size(), 150u);
}

// The bytes of a log that tests change.
class DamagedLog : public testing::Test {
 protected:
  // The segments have one, three and six records. The last segment consists of two commits of three
  // records.
  void SetUp() override {
    WriteSegment(1, {1});
    WriteSegment(2, {3});
    WriteSegment(5, {3, 3});
  }

  void WriteSegment(LogSequence first, const std::vector<int>& record_counts) {
    OpenLog(files_, first);
    const auto header = SegmentHeader(first);
    std::vector<std::byte> bytes(header.begin(), header.end());
    LogSequence sequence = first;
    for (const int record_count : record_counts) {
      const LogSequence commit = sequence;
      last_commit_at_ = bytes.size();
      for (int i = 0; i < record_count; ++i) AppendRecord(bytes, sequence++, commit);
    }
    path_ = absl::StrCat(kFolder, "/", SegmentName(first));
    bytes_[path_] = bytes;
    files_.SetBytes(path_, bytes);
  }

  static void AppendRecord(std::vector<std::byte>& bytes, LogSequence sequence,
                           LogSequence commit) {
    const ByteChain record = Record(Text(sequence));
    std::array<std::byte, kRecordHeaderBytes> header;
    WriteRecordHeader({static_cast<uint32_t>(record.size()), Checksum(record), sequence, commit},
                      header);
    bytes.insert(bytes.end(), header.begin(), header.end());
    const std::vector<std::byte> text = record.ToVector();
    bytes.insert(bytes.end(), text.begin(), text.end());
  }

  static std::string Text(LogSequence sequence) { return absl::StrCat("text ", sequence); }

  // Replays the log with the file PATH replaced by BYTES. Expects that the applied records are the
  // first ones of the log.
  absl::StatusOr<LogSequence> ReplayWith(const std::string& path, std::vector<std::byte> bytes) {
    for (const auto& [name, original] : bytes_) files_.SetBytes(name, original);
    files_.SetBytes(path, std::move(bytes));
    LogSequence expected = 1;
    return ReplayLog(files_, kFolder, 1, [&](LogSequence sequence, const ByteChain& record) {
      EXPECT_EQ(sequence, expected++);
      EXPECT_EQ(TextOf(record), Text(sequence));
      return absl::OkStatus();
    });
  }

  FaultyFiles files_;
  std::map<std::string, std::vector<std::byte>> bytes_;
  std::string path_;           // of the last segment
  size_t last_commit_at_ = 0;  // the position of the last commit in the last segment
};

TEST_F(DamagedLog, AnUndamagedLogIsReplayed) {
  EXPECT_EQ(ReplayWith(path_, bytes_[path_]).value(), 11u);
}

TEST_F(DamagedLog, EveryDamagedByteIsFoundOrBelongsToTheLastCommit) {
  int found_count = 0, cut_count = 0;
  for (const auto& [path, original] : bytes_) {
    for (size_t at = 0; at < original.size(); ++at) {
      for (const int change : {0x01, 0x80, 0xFF}) {
        auto bytes = original;
        bytes[at] ^= static_cast<std::byte>(change);
        const auto next = ReplayWith(path, bytes);
        if (path == path_ && at >= last_commit_at_) {
          ASSERT_TRUE(next.ok()) << next.status();
          ASSERT_GE(*next, 8u);
          ASSERT_LE(*next, 10u);
          ++cut_count;
        } else {
          ASSERT_EQ(next.status().code(), absl::StatusCode::kDataLoss) << path << " byte " << at;
          ASSERT_THAT(std::string(next.status().message()), HasSubstr(path));
          ++found_count;
        }
        ASSERT_FALSE(HasFailure()) << path << " byte " << at;
      }
    }
  }
  EXPECT_GT(found_count, 700);
  EXPECT_GT(cut_count, 300);
}

TEST_F(DamagedLog, ALastSegmentOfAnyLengthKeepsItsCompleteRecords) {
  const std::vector<std::byte> original = bytes_[path_];
  const size_t record_bytes = kRecordHeaderBytes + Text(5).size();
  int checked_count = 0;
  for (size_t size = kSegmentHeaderBytes; size <= last_commit_at_ + record_bytes; ++size) {
    const auto next = ReplayWith(path_, {original.begin(), original.begin() + size});
    ASSERT_TRUE(next.ok()) << next.status();
    const size_t record_count = (size - kSegmentHeaderBytes) / record_bytes;
    ASSERT_EQ(*next, 5 + record_count);
    ASSERT_EQ(files_.Read(path_).value().size(), kSegmentHeaderBytes + record_count * record_bytes);
    ++checked_count;
  }
  EXPECT_GT(checked_count, 100);
  for (size_t size = 0; size < kSegmentHeaderBytes; ++size) {
    const auto next = ReplayWith(path_, {original.begin(), original.begin() + size});
    ASSERT_EQ(next.status().code(), absl::StatusCode::kDataLoss) << size;
  }
}

TEST_F(DamagedLog, ZerosAfterTheLastCommitAreCut) {
  auto bytes = bytes_[path_];
  const size_t size = bytes.size();
  bytes.resize(size + 100);
  EXPECT_EQ(ReplayWith(path_, bytes).value(), 11u);
  EXPECT_EQ(files_.Read(path_).value().size(), size);
}

TEST_F(DamagedLog, AHoleInTheLastCommitCutsTheWholeCommitFromThere) {
  auto bytes = bytes_[path_];
  for (size_t at = last_commit_at_; at < last_commit_at_ + 8; ++at) bytes[at] = std::byte{0};
  EXPECT_EQ(ReplayWith(path_, bytes).value(), 8u);
  EXPECT_EQ(files_.Read(path_).value().size(), last_commit_at_);
}

TEST_F(DamagedLog, TheBytesOfATornRecordAreNotTakenForHeaders) {
  auto bytes = bytes_[path_];
  std::vector<std::byte> fake;
  AppendRecord(fake, 100, 100);
  const ByteChain record(fake, nullptr);
  std::array<std::byte, kRecordHeaderBytes> header;
  WriteRecordHeader({static_cast<uint32_t>(record.size()), Checksum(record), 11, 11}, header);
  bytes.insert(bytes.end(), header.begin(), header.end());
  bytes.insert(bytes.end(), fake.begin(), fake.end());
  bytes.back() ^= std::byte{1};
  EXPECT_EQ(ReplayWith(path_, bytes).value(), 11u);
}

TEST_F(DamagedLog, ASegmentOfAnotherFormatIsRefused) {
  auto bytes = bytes_[path_];
  bytes[16] = std::byte{2};
  const uint32_t crc = Checksum(ByteChain(std::span(bytes).first(20), nullptr));
  std::ranges::copy(std::as_bytes(std::span(&crc, 1)), bytes.begin() + 20);
  EXPECT_EQ(ReplayWith(path_, bytes).status(),
            absl::DataLossError("log/log-00000000000000000005: segment header: unknown format "
                                "version (expected 1, got 2)"));
}

TEST_F(DamagedLog, ARenamedSegmentIsRefused) {
  EXPECT_EQ(ReplayWith(path_, bytes_.begin()->second).status(),
            absl::DataLossError("log/log-00000000000000000005: segment header: differs from the "
                                "name of the file (expected record 5, got 1)"));
}

}  // namespace
}  // namespace thinwire

#include "server/core/worker_table.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {

namespace {

// Returns whether the methods of WorkerTable can produce ROW.
bool IsPossible(const WorkerRecord& row) {
  if (row.incarnation.value == 0) return row == WorkerRecord{};
  if (row.read.has_value() && *row.read > row.next) return false;
  if (row.last_push.has_value() && row.next < StepsAfter(row.last_push->step, 1)) return false;
  if (row.allowed.has_value() && !row.read.has_value()) return false;
  return !row.waiting.has_value() || (!row.left && row.read == row.waiting->step);
}

}  // namespace

Step StepsAfter(Step step, uint64_t n) {
  constexpr uint64_t kLast = std::numeric_limits<uint64_t>::max();
  return n > kLast - step.value ? Step{kLast} : step + n;
}

std::optional<Verdict> JudgedPush::VerdictOf(Step of) const {
  constexpr Verdict kVerdicts[] = {Verdict::kAccept, Verdict::kLate, Verdict::kRefused};
  if (of == step) return verdict;
  if (of > step || step - of > kEarlierCount) return std::nullopt;
  const uint64_t code = earlier >> (2 * (step - of - 1)) & 3;
  return code == 0 ? std::nullopt : std::optional(kVerdicts[code - 1]);
}

JudgedPush JudgedPush::Then(Step next, Verdict verdict_of_next) const {
  const uint64_t distance = next - step;
  JudgedPush then = {next, verdict_of_next};
  if (distance > kEarlierCount) return then;
  const uint64_t code = verdict == Verdict::kAccept ? 1 : verdict == Verdict::kLate ? 2 : 3;
  // A shift by 64 bits is undefined.
  if (distance < kEarlierCount) then.earlier = earlier << (2 * distance);
  then.earlier |= code << (2 * (distance - 1));
  return then;
}

bool WorkerTable::IsCurrent(WorkerId worker, Incarnation incarnation) const {
  return of(worker).joined() && of(worker).incarnation == incarnation;
}

std::optional<Step> WorkerTable::SmallestLiveNext() const {
  std::optional<Step> smallest;
  for (const WorkerRecord& w : workers_) {
    if (w.live() && (!smallest.has_value() || w.next < *smallest)) smallest = w.next;
  }
  return smallest;
}

Step WorkerTable::LargestNext() const {
  Step largest;
  for (const WorkerRecord& w : workers_) largest = std::max(largest, w.next);
  return largest;
}

Step WorkerTable::FirstNotBegun() const {
  Step first;
  for (const WorkerRecord& w : workers_) {
    const bool may_compute = w.joined() && w.allowed.has_value() && *w.allowed >= w.next;
    if (may_compute) first = std::max(first, StepsAfter(*w.allowed, 1));
  }
  return first;
}

std::vector<WorkerId> WorkerTable::UnfinishedWorkers() const {
  std::vector<WorkerId> holding;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].live() && workers_[i].next <= frontier_) holding.push_back(WorkerId{i});
  }
  return holding;
}

bool WorkerTable::MayPushFrontier(WorkerId worker) const {
  return of(worker).joined() && of(worker).next <= frontier_;
}

std::vector<WorkerId> WorkerTable::Waiting() const {
  std::vector<WorkerId> waiting;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    if (workers_[i].waiting.has_value()) waiting.push_back(WorkerId{i});
  }
  return waiting;
}

void WorkerTable::Join(WorkerId worker, Incarnation incarnation) {
  if (incarnation <= of(worker).incarnation) return;
  Change(worker, [incarnation](WorkerRecord& row) {
    row = WorkerRecord{.incarnation = incarnation, .next = row.next};
  });
}

void WorkerTable::Read(WorkerId worker, const WaitingRead& read) {
  // An incarnation never sends a read for a smaller step than that of its last read. A read for a
  // smaller step than the last one is therefore an old read that arrived out of order, and must not
  // replace the newer read.
  if (of(worker).read.has_value() && read.step < *of(worker).read) return;
  Change(worker, [&read](WorkerRecord& row) {
    row.read = read.step;
    row.next = std::max(row.next, read.step);
    row.waiting = read;
  });
}

void WorkerTable::Finish(WorkerId worker, Step step, Verdict verdict) {
  WorkerRecord& w = row(worker);
  w.last_push = w.last_push.has_value() && step > w.last_push->step
                    ? w.last_push->Then(step, verdict)
                    : JudgedPush{step, verdict};
  w.next = std::max(w.next, StepsAfter(step, 1));
}

void WorkerTable::Leave(WorkerId worker) {
  Change(worker, [](WorkerRecord& row) {
    row.left = true;
    row.waiting.reset();
  });
}

std::vector<ReadAnswer> WorkerTable::ReleaseReads(Step last, uint64_t in_flight, Step most) {
  std::vector<ReadAnswer> answers;
  for (uint32_t i = 0; i < workers_.size(); ++i) {
    WorkerRecord& w = workers_[i];
    if (!w.waiting.has_value() || w.waiting->step > last) continue;
    const Step step = w.waiting->step;
    const Step allowed = std::max(step, std::min(StepsAfter(step, in_flight), most));
    answers.push_back({WorkerId{i}, w.incarnation, step, w.waiting->form, allowed});
    w.allowed = std::max(w.allowed.value_or(allowed), allowed);
    w.waiting.reset();
  }
  return answers;
}

absl::Status WorkerTable::Restore(Step frontier, std::vector<WorkerRecord> rows) {
  if (rows.size() != workers_.size()) {
    return absl::InvalidArgumentError(absl::StrCat("workers: wrong number (expected ",
                                                   workers_.size(), ", got ", rows.size(), ")"));
  }
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!IsPossible(rows[i])) {
      return absl::InvalidArgumentError(absl::StrCat("worker ", i, ": its fields contradict"));
    }
  }
  frontier_ = frontier;
  workers_ = std::move(rows);
  for (WorkerRecord& w : workers_) {
    // A state without steps in flight does not name the answered read.
    if (!w.left && !w.waiting.has_value() && !w.allowed.has_value()) w.allowed = w.read;
  }
  live_count_ = static_cast<uint32_t>(std::ranges::count_if(workers_, &WorkerRecord::live));
  return absl::OkStatus();
}

}  // namespace thinwire

#include "server/core/testing/event_trace.h"

#include <algorithm>
#include <variant>

namespace thinwire {

TraceEntry TraceEntry::Of(const Event& event) {
  TraceEntry m;
  if (std::holds_alternative<OpenEvent>(event)) m.kind = TraceEntry::Kind::kOpen;
  if (const auto* e = std::get_if<JoinEvent>(&event)) {
    m.kind = TraceEntry::Kind::kJoin, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ExpireEvent>(&event)) {
    m.kind = TraceEntry::Kind::kExpire, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ReturnEvent>(&event)) {
    m.kind = TraceEntry::Kind::kReturn, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<LeaveEvent>(&event)) {
    m.kind = TraceEntry::Kind::kLeave, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ReadEvent>(&event)) {
    m.kind = TraceEntry::Kind::kRead, m.worker = e->worker, m.incarnation = e->incarnation;
    m.step = e->step, m.generation = e->generation, m.form = e->form;
  } else if (const auto* e = std::get_if<PushEvent>(&event)) {
    m.kind = TraceEntry::Kind::kPush, m.worker = e->worker, m.incarnation = e->incarnation;
    m.step = e->step, m.generation = e->generation, m.form = e->read_form;
    m.push = *e;
  } else if (const auto* e = std::get_if<RuleEvent>(&event)) {
    m.kind = TraceEntry::Kind::kRule, m.rule = e->rule, m.step = e->from;
  } else if (const auto* e = std::get_if<SumEvent>(&event)) {
    m.kind = TraceEntry::Kind::kSum, m.step = e->step, m.sums = e->sums;
  }
  return m;
}

bool EventTrace::Contains(TraceEntry::Kind kind) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const TraceEntry& m) { return m.kind == kind; });
}

bool EventTrace::Opened() const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [](const TraceEntry& m) { return m.opened; });
}

std::optional<Rule> EventTrace::RuleInForce() const {
  std::optional<Rule> rule;
  for (const TraceEntry& m : entries_) {
    if (m.in_force.has_value()) rule = m.in_force;
  }
  return rule;
}

std::optional<size_t> EventTrace::NextRule() const {
  std::optional<size_t> next;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].kind == TraceEntry::Kind::kRule) next = i;
    if (entries_[i].in_force.has_value()) next.reset();
  }
  return next;
}

std::optional<Step> EventTrace::Allowed(WorkerId worker) const {
  std::optional<Step> allowed;
  const std::optional<size_t> join = LastJoin(worker);
  for (size_t i = join.value_or(entries_.size()); i < entries_.size(); ++i) {
    for (const ReadAnswer& answer : entries_[i].answers) {
      if (answer.worker == worker) allowed = std::max(allowed.value_or(Step{}), answer.last);
    }
  }
  return allowed;
}

std::optional<Step> EventTrace::LargestAllowed() const {
  std::optional<Step> largest;
  for (uint32_t i = 0; i < worker_count_; ++i) {
    const WorkerId worker{i};
    const std::optional<Step> allowed = Allowed(worker);
    if (Left(worker) || !allowed.has_value() || *allowed < Next(worker)) continue;
    largest = std::max(largest, allowed);
  }
  return largest;
}

std::optional<Verdict> EventTrace::KnownVerdict(WorkerId worker, Step step) const {
  std::optional<Verdict> known;
  Step newest;
  for (size_t i = LastJoin(worker).value(); i < entries_.size(); ++i) {
    const TraceEntry& m = entries_[i];
    if (m.worker != worker || !m.finished.has_value()) continue;
    newest = std::max(newest, m.step);
    if (m.step == step) known = m.finished;
  }
  return known.has_value() && newest.value - step.value <= 32 ? known : std::nullopt;
}

Step EventTrace::Frontier() const {
  Step frontier;
  for (const TraceEntry& m : entries_) frontier = std::max(frontier, m.frontier);
  return frontier;
}

std::optional<size_t> EventTrace::LastJoin(WorkerId worker) const {
  std::optional<size_t> join_index;
  Incarnation newest;
  for (size_t i = 0; i < entries_.size(); ++i) {
    const TraceEntry& m = entries_[i];
    if (m.kind == TraceEntry::Kind::kJoin && m.worker == worker && m.incarnation > newest) {
      newest = m.incarnation;
      join_index = i;
    }
  }
  return join_index;
}

bool EventTrace::Left(WorkerId worker) const {
  const std::optional<size_t> join_index = LastJoin(worker);
  if (!join_index.has_value()) return false;
  for (size_t i = *join_index; i < entries_.size(); ++i) {
    const TraceEntry& m = entries_[i];
    if (m.kind == TraceEntry::Kind::kLeave && m.worker == worker &&
        m.incarnation == entries_[*join_index].incarnation) {
      return true;
    }
  }
  return false;
}

bool EventTrace::Live(WorkerId worker) const {
  const std::optional<size_t> join_index = LastJoin(worker);
  if (!join_index.has_value() || Left(worker)) return false;
  bool has_read = false;
  bool silent = false;
  for (size_t i = *join_index; i < entries_.size(); ++i) {
    const TraceEntry& m = entries_[i];
    if (m.worker != worker || m.incarnation != entries_[*join_index].incarnation) continue;
    if (m.read.has_value()) has_read = true;
    if (m.kind == TraceEntry::Kind::kExpire) silent = true;
    if (m.kind == TraceEntry::Kind::kReturn || m.heard) silent = false;
  }
  return has_read && !silent;
}

std::vector<WorkerId> EventTrace::LiveWorkers() const {
  std::vector<WorkerId> live;
  for (uint32_t i = 0; i < worker_count_; ++i) {
    if (Live(WorkerId{i})) live.push_back(WorkerId{i});
  }
  return live;
}

Step EventTrace::Next(WorkerId worker) const {
  Step next;
  for (const TraceEntry& m : entries_) {
    if (m.worker != worker) continue;
    if (m.read.has_value()) next = std::max(next, *m.read);
    if (m.finished.has_value()) next = std::max(next, m.step + 1);
  }
  return next;
}

std::optional<size_t> EventTrace::LastFinishingPush(WorkerId worker) const {
  std::optional<size_t> last;
  for (size_t i = LastJoin(worker).value(); i < entries_.size(); ++i) {
    if (entries_[i].worker == worker && entries_[i].finished.has_value()) last = i;
  }
  return last;
}

std::optional<size_t> EventTrace::WaitingRead(WorkerId worker) const {
  const std::optional<size_t> join_index = LastJoin(worker);
  if (!join_index.has_value() || Left(worker)) return std::nullopt;
  std::optional<size_t> largest;
  for (size_t i = *join_index; i < entries_.size(); ++i) {
    const TraceEntry& m = entries_[i];
    if (m.worker != worker || !m.read.has_value()) continue;
    if (!largest.has_value() || *m.read >= *entries_[*largest].read) largest = i;
  }
  if (!largest.has_value()) return std::nullopt;
  for (size_t i = *largest; i < entries_.size(); ++i) {
    for (const ReadAnswer& answer : entries_[i].answers) {
      if (answer.worker == worker) return std::nullopt;
    }
  }
  return largest;
}

std::vector<size_t> EventTrace::PendingGradients() const {
  std::vector<size_t> pending;
  for (size_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].has_gradient && entries_[i].update == 0) pending.push_back(i);
  }
  return pending;
}

}  // namespace thinwire

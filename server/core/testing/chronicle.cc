#include "server/core/testing/chronicle.h"

#include <algorithm>
#include <variant>

namespace thinwire {

Moment Moment::Of(const Event& event) {
  Moment m;
  if (std::holds_alternative<OpenEvent>(event)) m.kind = Moment::Kind::kOpen;
  if (const auto* e = std::get_if<JoinEvent>(&event)) {
    m.kind = Moment::Kind::kJoin, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ExpireEvent>(&event)) {
    m.kind = Moment::Kind::kExpire, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ReturnEvent>(&event)) {
    m.kind = Moment::Kind::kReturn, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<LeaveEvent>(&event)) {
    m.kind = Moment::Kind::kLeave, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ReadEvent>(&event)) {
    m.kind = Moment::Kind::kRead, m.worker = e->worker, m.incarnation = e->incarnation;
    m.step = e->step, m.generation = e->generation, m.form = e->form;
  } else if (const auto* e = std::get_if<PushEvent>(&event)) {
    m.kind = Moment::Kind::kPush, m.worker = e->worker, m.incarnation = e->incarnation;
    m.step = e->step, m.generation = e->generation, m.form = e->read_form;
    m.push = *e;
  }
  return m;
}

bool Chronicle::Happened(Moment::Kind kind) const {
  return std::any_of(moments_.begin(), moments_.end(),
                     [&](const Moment& m) { return m.kind == kind; });
}

bool Chronicle::Opened() const {
  return std::any_of(moments_.begin(), moments_.end(), [](const Moment& m) { return m.opened; });
}

Step Chronicle::Frontier() const {
  Step frontier;
  for (const Moment& m : moments_) frontier = std::max(frontier, m.frontier);
  return frontier;
}

std::optional<size_t> Chronicle::Birth(WorkerId worker) const {
  std::optional<size_t> birth;
  Incarnation newest;
  for (size_t i = 0; i < moments_.size(); ++i) {
    const Moment& m = moments_[i];
    if (m.kind == Moment::Kind::kJoin && m.worker == worker && m.incarnation > newest) {
      newest = m.incarnation;
      birth = i;
    }
  }
  return birth;
}

bool Chronicle::Left(WorkerId worker) const {
  const std::optional<size_t> birth = Birth(worker);
  if (!birth.has_value()) return false;
  for (size_t i = *birth; i < moments_.size(); ++i) {
    const Moment& m = moments_[i];
    if (m.kind == Moment::Kind::kLeave && m.worker == worker &&
        m.incarnation == moments_[*birth].incarnation) {
      return true;
    }
  }
  return false;
}

bool Chronicle::Live(WorkerId worker) const {
  const std::optional<size_t> birth = Birth(worker);
  if (!birth.has_value() || Left(worker)) return false;
  bool has_read = false;
  bool silent = false;
  for (size_t i = *birth; i < moments_.size(); ++i) {
    const Moment& m = moments_[i];
    if (m.worker != worker || m.incarnation != moments_[*birth].incarnation) continue;
    if (m.read.has_value()) has_read = true;
    if (m.kind == Moment::Kind::kExpire) silent = true;
    if (m.kind == Moment::Kind::kReturn || m.heard) silent = false;
  }
  return has_read && !silent;
}

std::vector<WorkerId> Chronicle::LiveOnes() const {
  std::vector<WorkerId> live;
  for (uint32_t i = 0; i < worker_count_; ++i) {
    if (Live(WorkerId{i})) live.push_back(WorkerId{i});
  }
  return live;
}

Step Chronicle::Next(WorkerId worker) const {
  Step next;
  for (const Moment& m : moments_) {
    if (m.worker != worker) continue;
    if (m.read.has_value()) next = std::max(next, *m.read);
    if (m.fresh.has_value()) next = std::max(next, m.step + 1);
  }
  return next;
}

std::optional<size_t> Chronicle::LastFreshPush(WorkerId worker) const {
  std::optional<size_t> last;
  for (size_t i = Birth(worker).value(); i < moments_.size(); ++i) {
    if (moments_[i].worker == worker && moments_[i].fresh.has_value()) last = i;
  }
  return last;
}

std::optional<size_t> Chronicle::WaitingRead(WorkerId worker) const {
  const std::optional<size_t> birth = Birth(worker);
  if (!birth.has_value() || Left(worker)) return std::nullopt;
  std::optional<size_t> largest;
  for (size_t i = *birth; i < moments_.size(); ++i) {
    const Moment& m = moments_[i];
    if (m.worker != worker || !m.read.has_value()) continue;
    if (!largest.has_value() || *m.read >= *moments_[*largest].read) largest = i;
  }
  if (!largest.has_value()) return std::nullopt;
  for (size_t i = *largest; i < moments_.size(); ++i) {
    for (const Answer& answer : moments_[i].answers) {
      if (answer.worker == worker) return std::nullopt;
    }
  }
  return largest;
}

std::vector<size_t> Chronicle::PendingGifts() const {
  std::vector<size_t> gifts;
  for (size_t i = 0; i < moments_.size(); ++i) {
    if (moments_[i].gave && moments_[i].update == 0) gifts.push_back(i);
  }
  return gifts;
}

}  // namespace thinwire

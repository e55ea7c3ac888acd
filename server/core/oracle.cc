#include "server/core/oracle.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <variant>

#include "server/core/fakes.h"

namespace thinwire {

Oracle::Moment Oracle::Flatten(const Event& event) {
  Moment m;
  if (std::holds_alternative<OpenEvent>(event)) m.kind = Kind::kOpen;
  if (const auto* e = std::get_if<JoinEvent>(&event)) {
    m.kind = Kind::kJoin, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ExpireEvent>(&event)) {
    m.kind = Kind::kExpire, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ReturnEvent>(&event)) {
    m.kind = Kind::kReturn, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<LeaveEvent>(&event)) {
    m.kind = Kind::kLeave, m.worker = e->worker, m.incarnation = e->incarnation;
  } else if (const auto* e = std::get_if<ReadEvent>(&event)) {
    m.kind = Kind::kRead, m.worker = e->worker, m.incarnation = e->incarnation;
    m.step = e->step, m.generation = e->generation, m.codec = e->codec;
  } else if (const auto* e = std::get_if<PushEvent>(&event)) {
    m.kind = Kind::kPush, m.worker = e->worker, m.incarnation = e->incarnation;
    m.step = e->step, m.generation = e->generation, m.codec = e->read_codec;
    m.push = *e;
  }
  return m;
}

bool Oracle::Happened(Kind kind) const {
  return std::any_of(history_.begin(), history_.end(),
                     [&](const Moment& m) { return m.kind == kind; });
}

bool Oracle::open() const {
  return std::any_of(history_.begin(), history_.end(), [](const Moment& m) { return m.opened; });
}

Step Oracle::frontier() const {
  Step frontier;
  for (const Moment& m : history_) frontier = std::max(frontier, m.frontier);
  return frontier;
}

std::optional<size_t> Oracle::Birth(WorkerId worker) const {
  std::optional<size_t> birth;
  Incarnation newest;
  for (size_t i = 0; i < history_.size(); ++i) {
    const Moment& m = history_[i];
    if (m.kind == Kind::kJoin && m.worker == worker && m.incarnation > newest) {
      newest = m.incarnation;
      birth = i;
    }
  }
  return birth;
}

bool Oracle::Left(WorkerId worker) const {
  const std::optional<size_t> birth = Birth(worker);
  if (!birth.has_value()) return false;
  for (size_t i = *birth; i < history_.size(); ++i) {
    const Moment& m = history_[i];
    if (m.kind == Kind::kLeave && m.worker == worker &&
        m.incarnation == history_[*birth].incarnation) {
      return true;
    }
  }
  return false;
}

bool Oracle::Live(WorkerId worker) const {
  const std::optional<size_t> birth = Birth(worker);
  if (!birth.has_value() || Left(worker)) return false;
  bool has_read = false;
  bool silent = false;
  for (size_t i = *birth; i < history_.size(); ++i) {
    const Moment& m = history_[i];
    if (m.worker != worker || m.incarnation != history_[*birth].incarnation) continue;
    if (m.read.has_value()) has_read = true;
    if (m.kind == Kind::kExpire) silent = true;
    if (m.kind == Kind::kReturn || m.heard) silent = false;
  }
  return has_read && !silent;
}

std::vector<WorkerId> Oracle::LiveOnes() const {
  std::vector<WorkerId> live;
  for (uint32_t i = 0; i < options_.rule.workers; ++i) {
    if (Live(WorkerId{i})) live.push_back(WorkerId{i});
  }
  return live;
}

Step Oracle::Next(WorkerId worker) const {
  Step next;
  for (const Moment& m : history_) {
    if (m.worker != worker) continue;
    if (m.read.has_value()) next = std::max(next, *m.read);
    if (m.fresh.has_value()) next = std::max(next, m.step + 1);
  }
  return next;
}

std::optional<size_t> Oracle::LastFreshPush(WorkerId worker) const {
  std::optional<size_t> last;
  for (size_t i = Birth(worker).value(); i < history_.size(); ++i) {
    if (history_[i].worker == worker && history_[i].fresh.has_value()) last = i;
  }
  return last;
}

std::optional<size_t> Oracle::WaitingRead(WorkerId worker) const {
  const std::optional<size_t> birth = Birth(worker);
  if (!birth.has_value() || Left(worker)) return std::nullopt;
  std::optional<size_t> largest;
  for (size_t i = *birth; i < history_.size(); ++i) {
    const Moment& m = history_[i];
    if (m.worker != worker || !m.read.has_value()) continue;
    if (!largest.has_value() || *m.read >= *history_[*largest].read) largest = i;
  }
  if (!largest.has_value()) return std::nullopt;
  for (size_t i = *largest; i < history_.size(); ++i) {
    for (const Answer& answer : history_[i].answers) {
      if (answer.worker == worker) return std::nullopt;
    }
  }
  return largest;
}

uint32_t Oracle::Wanted() const { return Happened(Kind::kOpen) ? 1 : options_.rule.workers; }

std::vector<size_t> Oracle::PendingGifts() const {
  std::vector<size_t> gifts;
  for (size_t i = 0; i < history_.size(); ++i) {
    if (history_[i].gave && history_[i].update == 0) gifts.push_back(i);
  }
  return gifts;
}

std::optional<Verdict> Oracle::ForbidsSpeech(const Moment& now) const {
  if (now.generation != options_.generation) return Verdict::kStale;
  const std::optional<size_t> birth = Birth(now.worker);
  if (!birth.has_value() || history_[*birth].incarnation < now.incarnation) return Verdict::kStale;
  if (now.incarnation < history_[*birth].incarnation || Left(now.worker)) return Verdict::kFenced;
  return std::nullopt;
}

Judgement Oracle::JudgePush(const Moment& now) const {
  Judgement j;
  j.worker = now.worker;
  j.incarnation = now.incarnation;
  j.step = now.step;
  if (const auto forbidden = ForbidsSpeech(now)) {
    j.verdict = *forbidden;
    return j;
  }
  const std::optional<size_t> last = LastFreshPush(now.worker);
  const std::vector<float> values =
      now.push.examples > 0 ? Values(now.push.payload, options_.value_count) : std::vector<float>{};
  const bool finite =
      std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
  const bool bounded = options_.rule.slack != kUnboundedSlack;
  if (last.has_value() && history_[*last].step == now.step) {
    j.verdict = *history_[*last].fresh;
    j.again = true;
  } else if (last.has_value() && now.step < history_[*last].step) {
    j.verdict = Verdict::kRepeat;
  } else if (now.step < Next(now.worker) || now.step < frontier()) {
    j.verdict = Verdict::kLate;
  } else if (!open() || (bounded && now.step.value > frontier().value + options_.rule.slack)) {
    j.verdict = Verdict::kEarly;
  } else if (!finite) {
    j.verdict = Verdict::kRefused;
  } else {
    j.verdict = Verdict::kAccept;
    const uint64_t computed = std::min(now.push.computed_version.value, updates_.size());
    j.staleness = updates_.size() - computed;
  }
  return j;
}

void Oracle::UpdateFrom(const std::vector<size_t>& gifts) {
  Expected update;
  update.sum.resize(options_.value_count);
  for (const Moment& m : history_) {
    if (m.update != 0) update.examples_before += m.push.examples;
  }
  for (const size_t gift : gifts) {
    const PushEvent& push = history_[gift].push;
    const std::vector<float> values = Values(push.payload, options_.value_count);
    for (size_t i = 0; i < values.size(); ++i) update.sum[i] += double{values[i]} * push.examples;
    update.weight += uint64_t{push.examples} + push.late_examples;
    history_[gift].update = updates_.size() + 1;
  }
  updates_.push_back(update);
}

void Oracle::TakePush(Moment& now, Effects& effects) {
  effects.judgement = JudgePush(now);
  const Verdict verdict = effects.judgement->verdict;
  now.heard = verdict != Verdict::kStale && verdict != Verdict::kFenced;
  if (!now.heard || verdict == Verdict::kEarly) return;
  now.read = now.step + 1;
  if (effects.judgement->again || verdict == Verdict::kRepeat) return;
  now.fresh = verdict;
  now.gave = verdict == Verdict::kAccept && now.push.examples > 0;
}

void Oracle::CloseRounds(Effects& effects) {
  for (;;) {
    const Step round = frontier();
    const std::vector<WorkerId> live = LiveOnes();
    const bool all = !live.empty() && std::all_of(live.begin(), live.end(),
                                                  [&](WorkerId w) { return Next(w) > round; });
    const std::vector<size_t> gifts = PendingGifts();
    if (!all && (gifts.empty() || gifts.size() < options_.rule.quorum)) return;
    RoundClosed closed = {round, {}};
    for (const size_t gift : gifts) closed.accepted.push_back(history_[gift].worker);
    std::sort(closed.accepted.begin(), closed.accepted.end());
    const bool joins_last =
        gifts.empty() && !effects.rounds.empty() && effects.rounds.back().accepted.empty();
    if (joins_last) effects.rounds.pop_back();
    effects.rounds.push_back(closed);
    if (!gifts.empty()) UpdateFrom(gifts);
    history_.back().frontier = round + 1;
  }
}

void Oracle::FollowTheSlowest() {
  std::optional<Step> slowest;
  for (const WorkerId w : LiveOnes()) {
    if (!slowest.has_value() || Next(w) < *slowest) slowest = Next(w);
  }
  if (!slowest.has_value() || *slowest <= frontier()) return;
  const bool ssp = options_.rule.slack != kUnboundedSlack;
  if (ssp && !PendingGifts().empty()) UpdateFrom(PendingGifts());
  history_.back().frontier = *slowest;
}

void Oracle::AnswerReads(Effects& effects) {
  for (uint32_t i = 0; i < options_.rule.workers; ++i) {
    const std::optional<size_t> read = WaitingRead(WorkerId{i});
    if (!read.has_value()) continue;
    const Moment& m = history_[*read];
    const bool bounded = options_.rule.slack != kUnboundedSlack;
    if (bounded && m.read->value > frontier().value + options_.rule.slack) continue;
    effects.answers.push_back({WorkerId{i}, m.incarnation, *m.read, m.codec});
  }
  history_.back().answers = effects.answers;
}

Effects Oracle::Apply(const Event& event) {
  Effects effects;
  const bool had_live = !LiveOnes().empty();
  Moment now = Flatten(event);
  if (now.kind == Kind::kPush) TakePush(now, effects);
  if (now.kind == Kind::kRead) {
    if (const auto forbidden = ForbidsSpeech(now)) {
      effects.judgement.emplace();
      effects.judgement->worker = now.worker;
      effects.judgement->incarnation = now.incarnation;
      effects.judgement->step = now.step;
      effects.judgement->verdict = *forbidden;
    } else {
      now.heard = true;
      now.read = now.step;
    }
  }
  history_.push_back(now);

  const bool by_push = options_.rule.fold == Fold::kPush;
  if (by_push && PendingGifts().size() >= options_.rule.fold_every) UpdateFrom(PendingGifts());
  if (!open() && Happened(Kind::kSeed) && LiveOnes().size() >= Wanted()) {
    history_.back().opened = true;
    effects.opened = true;
  }
  if (open() && !by_push) CloseRounds(effects);
  if (open() && by_push) FollowTheSlowest();
  if (by_push && had_live && LiveOnes().empty() && !PendingGifts().empty())
    UpdateFrom(PendingGifts());
  if (open()) AnswerReads(effects);

  if (effects.judgement.has_value()) {
    effects.judgement->frontier = frontier();
    effects.judgement->version = version();
  }
  if (now.kind == Kind::kJoin) {
    JoinAnswer join;
    const std::optional<size_t> birth = Birth(now.worker);
    if (birth.has_value()) join.incarnation = history_[*birth].incarnation;
    join.open = open();
    join.seeded = Happened(Kind::kSeed);
    join.frontier = frontier();
    join.predecessor_next = Next(now.worker);
    for (uint32_t i = 0; i < options_.rule.workers; ++i) {
      join.largest_next = std::max(join.largest_next, Next(WorkerId{i}));
    }
    effects.join = join;
  }
  return effects;
}

std::vector<Wait> Oracle::Waits() const {
  std::vector<Wait> waits;
  for (uint32_t i = 0; i < options_.rule.workers; ++i) {
    const std::optional<size_t> read = WaitingRead(WorkerId{i});
    if (!read.has_value()) continue;
    Wait wait;
    wait.worker = WorkerId{i};
    wait.incarnation = history_[*read].incarnation;
    wait.step = *history_[*read].read;
    wait.frontier = frontier();
    wait.unseeded = !Happened(Kind::kSeed);
    const std::vector<WorkerId> live = LiveOnes();
    if (!open()) {
      wait.live = static_cast<uint32_t>(live.size());
      wait.wanted = Wanted();
    } else {
      for (const WorkerId w : live) {
        if (Next(w) <= frontier()) wait.unfinished.push_back(w);
      }
    }
    waits.push_back(wait);
  }
  return waits;
}

}  // namespace thinwire

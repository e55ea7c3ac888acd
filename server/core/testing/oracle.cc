#include "server/core/testing/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/core/testing/fakes.h"

namespace thinwire {

uint32_t Oracle::Wanted() const {
  return chronicle_.Happened(Moment::Kind::kOpen) ? 1 : options_.rule.workers;
}

std::optional<Verdict> Oracle::ForbidsSpeech(const Moment& now) const {
  if (now.generation != options_.generation) return Verdict::kStale;
  const std::optional<size_t> birth = chronicle_.Birth(now.worker);
  if (!birth.has_value()) return Verdict::kStale;
  const Incarnation newest = chronicle_.moments()[*birth].incarnation;
  if (newest < now.incarnation) return Verdict::kStale;
  if (now.incarnation < newest || chronicle_.Left(now.worker)) return Verdict::kFenced;
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
  const std::optional<size_t> last_push = chronicle_.LastFreshPush(now.worker);
  const Moment* last = last_push.has_value() ? &chronicle_.moments()[*last_push] : nullptr;
  const std::vector<float> values =
      now.push.examples > 0 ? Values(now.push.payload) : std::vector<float>{};
  const double sums_share = std::numeric_limits<float>::max() / 2.0 / options_.rule.MostFolded();
  const bool finite = std::all_of(values.begin(), values.end(), [&](float v) {
    return std::abs(double{v}) * now.push.examples <= sums_share;
  });
  const bool bounded = options_.rule.slack != kUnboundedSlack;
  if (last != nullptr && last->step == now.step) {
    j.verdict = *last->fresh;
    j.again = true;
  } else if (last != nullptr && now.step < last->step) {
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

void Oracle::Meet(Moment& now, Effects& effects) const {
  if (now.kind == Moment::Kind::kPush) return MeetPush(now, effects);
  if (now.kind != Moment::Kind::kRead) return;
  if (const auto forbidden = ForbidsSpeech(now)) {
    effects.judgement.emplace();
    effects.judgement->worker = now.worker;
    effects.judgement->incarnation = now.incarnation;
    effects.judgement->step = now.step;
    effects.judgement->verdict = *forbidden;
    return;
  }
  now.heard = true;
  now.read = now.step;
}

void Oracle::MeetPush(Moment& now, Effects& effects) const {
  effects.judgement = JudgePush(now);
  const Verdict verdict = effects.judgement->verdict;
  now.heard = verdict != Verdict::kStale && verdict != Verdict::kFenced;
  if (!now.heard || verdict == Verdict::kEarly) return;
  now.read = now.step + 1;
  if (effects.judgement->again || verdict == Verdict::kRepeat) return;
  now.fresh = verdict;
  now.gave = verdict == Verdict::kAccept && now.push.examples > 0;
}

void Oracle::UpdateFromGifts() {
  Expected update;
  update.sum.resize(options_.value_count);
  for (const Moment& m : chronicle_.moments()) {
    if (m.update != 0) update.examples_before += m.push.examples;
  }
  for (const size_t gift : chronicle_.PendingGifts()) {
    const PushEvent& push = chronicle_.at(gift).push;
    const std::vector<float> values = Values(push.payload);
    for (size_t i = 0; i < values.size(); ++i) update.sum[i] += double{values[i]} * push.examples;
    update.weight += uint64_t{push.examples} + push.late_examples;
    chronicle_.at(gift).update = updates_.size() + 1;
  }
  updates_.push_back(update);
}

void Oracle::Open(Effects& effects) {
  if (open() || !chronicle_.Happened(Moment::Kind::kSeed)) return;
  if (chronicle_.LiveOnes().size() < Wanted()) return;
  chronicle_.now().opened = true;
  effects.opened = true;
}

void Oracle::CloseRounds(Effects& effects) {
  for (;;) {
    const Step round = frontier();
    const std::vector<WorkerId> live = chronicle_.LiveOnes();
    const bool all = !live.empty() && std::all_of(live.begin(), live.end(),
                                                  [&](WorkerId w) { return Next(w) > round; });
    const std::vector<size_t> gifts = chronicle_.PendingGifts();
    if (!all && (gifts.empty() || gifts.size() < options_.rule.quorum)) return;
    RoundClosed closed = {round, {}};
    for (const size_t gift : gifts) closed.accepted.push_back(chronicle_.at(gift).worker);
    std::sort(closed.accepted.begin(), closed.accepted.end());
    std::vector<RoundClosed>& rounds = effects.rounds;
    if (gifts.empty() && !rounds.empty() && rounds.back().accepted.empty()) rounds.pop_back();
    rounds.push_back(closed);
    if (!gifts.empty()) UpdateFromGifts();
    chronicle_.now().frontier = round + 1;
  }
}

void Oracle::FollowTheSlowest() {
  std::optional<Step> slowest;
  for (const WorkerId w : chronicle_.LiveOnes()) {
    if (!slowest.has_value() || Next(w) < *slowest) slowest = Next(w);
  }
  if (!slowest.has_value() || *slowest <= frontier()) return;
  const bool ssp = options_.rule.slack != kUnboundedSlack;
  if (ssp && !chronicle_.PendingGifts().empty()) UpdateFromGifts();
  chronicle_.now().frontier = *slowest;
}

void Oracle::Publish(Step frontier_before) {
  const bool by_round = options_.rule.fold == Fold::kRound;
  const bool ssp = !by_round && options_.rule.slack != kUnboundedSlack;
  const size_t live = chronicle_.LiveOnes().size();
  const size_t together = options_.publish->every == 0 ? live : options_.publish->every;
  const bool enough = updates_.size() - published_.value >= together;
  const bool promised = ssp && frontier() > frontier_before;
  if (by_round || promised || enough || live == 0) published_ = version();
}

void Oracle::AnswerReads(Effects& effects) {
  for (uint32_t i = 0; i < options_.rule.workers; ++i) {
    const std::optional<size_t> read = chronicle_.WaitingRead(WorkerId{i});
    if (!read.has_value()) continue;
    const Moment& m = chronicle_.moments()[*read];
    const bool bounded = options_.rule.slack != kUnboundedSlack;
    if (bounded && m.read->value > frontier().value + options_.rule.slack) continue;
    effects.answers.push_back({WorkerId{i}, m.incarnation, *m.read, m.form});
  }
  chronicle_.now().answers = effects.answers;
}

JoinAnswer Oracle::AnswerJoin(WorkerId worker) const {
  JoinAnswer join;
  const std::optional<size_t> birth = chronicle_.Birth(worker);
  if (birth.has_value()) join.incarnation = chronicle_.moments()[*birth].incarnation;
  join.open = open();
  join.seeded = chronicle_.Happened(Moment::Kind::kSeed);
  join.frontier = frontier();
  join.predecessor_next = Next(worker);
  for (uint32_t i = 0; i < options_.rule.workers; ++i) {
    join.largest_next = std::max(join.largest_next, Next(WorkerId{i}));
  }
  return join;
}

Effects Oracle::Apply(const Event& event) {
  Effects effects;
  const bool had_live = !chronicle_.LiveOnes().empty();
  const Step frontier_before = frontier();
  Moment now = Moment::Of(event);
  Meet(now, effects);
  chronicle_.Add(now);

  const bool by_push = options_.rule.fold == Fold::kPush;
  if (by_push && chronicle_.PendingGifts().size() >= options_.rule.fold_every) UpdateFromGifts();
  Open(effects);
  if (open() && !by_push) CloseRounds(effects);
  if (open() && by_push) FollowTheSlowest();
  const bool all_gone = had_live && chronicle_.LiveOnes().empty();
  if (by_push && all_gone && !chronicle_.PendingGifts().empty()) UpdateFromGifts();
  if (open() && options_.publish.has_value()) Publish(frontier_before);
  if (open()) AnswerReads(effects);

  if (effects.judgement.has_value()) {
    effects.judgement->frontier = frontier();
    effects.judgement->version = version();
  }
  if (now.kind == Moment::Kind::kJoin) effects.join = AnswerJoin(now.worker);
  return effects;
}

std::vector<Wait> Oracle::Waits() const {
  std::vector<Wait> waits;
  for (uint32_t i = 0; i < options_.rule.workers; ++i) {
    const std::optional<size_t> read = chronicle_.WaitingRead(WorkerId{i});
    if (!read.has_value()) continue;
    Wait wait;
    wait.worker = WorkerId{i};
    wait.incarnation = chronicle_.moments()[*read].incarnation;
    wait.step = *chronicle_.moments()[*read].read;
    wait.frontier = frontier();
    wait.unseeded = !chronicle_.Happened(Moment::Kind::kSeed);
    const std::vector<WorkerId> live = chronicle_.LiveOnes();
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

#include "server/core/testing/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "server/core/testing/fakes.h"

namespace thinwire {

namespace {

bool IsOtherMode(Rule a, Rule b) {
  // Only the numbers of workers and the order of the fold may differ.
  a.workers = b.workers;
  a.quorum = b.quorum;
  a.ordered_fold = b.ordered_fold;
  a.in_flight = b.in_flight;
  return a != b;
}

}  // namespace

uint32_t Oracle::WorkersToOpen() const {
  return trace_.Contains(TraceEntry::Kind::kOpen) ? 1 : rule().workers;
}

std::optional<Verdict> Oracle::RejectSender(const TraceEntry& now) const {
  if (now.generation != options_.generation) return Verdict::kStale;
  const std::optional<size_t> join_index = trace_.LastJoin(now.worker);
  if (!join_index.has_value()) return Verdict::kStale;
  const Incarnation newest = trace_.entries()[*join_index].incarnation;
  if (newest < now.incarnation) return Verdict::kStale;
  if (now.incarnation < newest || trace_.Left(now.worker)) return Verdict::kFenced;
  return std::nullopt;
}

Judgement Oracle::JudgePush(const TraceEntry& now) const {
  Judgement j;
  j.worker = now.worker;
  j.incarnation = now.incarnation;
  j.step = now.step;
  if (const auto rejected = RejectSender(now)) {
    j.verdict = *rejected;
    return j;
  }
  const std::optional<size_t> last_push = trace_.LastFinishingPush(now.worker);
  const TraceEntry* last = last_push.has_value() ? &trace_.entries()[*last_push] : nullptr;
  const std::vector<float> values =
      now.push.examples > 0 ? Values(now.push.payload) : std::vector<float>{};
  const double largest = std::numeric_limits<float>::max() / 2.0 / rule().MostFolded();
  const bool finite = std::all_of(values.begin(), values.end(), [&](float v) {
    return std::abs(double{v}) * now.push.examples <= largest;
  });
  const bool bounded = rule().slack != kUnboundedSlack;
  const uint64_t computed = std::min(now.push.computed_version.value, updates_.size());
  const uint64_t staleness = updates_.size() - computed;
  const StalenessSpec& policy = options_.staleness;
  const std::optional<Verdict> known = trace_.KnownVerdict(now.worker, now.step);
  if (known.has_value()) {
    j.verdict = *known;
    j.again = true;
  } else if (last != nullptr && now.step < last->step) {
    j.verdict = Verdict::kRepeat;
  } else if (now.step < Next(now.worker) || now.step < NextFrontier()) {
    j.verdict = Verdict::kLate;
  } else if (!open() || !held_.empty() ||
             (bounded && now.step.value > frontier().value + rule().slack)) {
    j.verdict = Verdict::kEarly;
  } else if (policy.policy == StalenessPolicy::kDrop && now.push.examples > 0 &&
             staleness > policy.bound) {
    j.verdict = Verdict::kRefused;
    j.dropped = true;
  } else if (!finite) {
    j.verdict = Verdict::kRefused;
  } else {
    j.verdict = Verdict::kAccept;
    j.staleness = staleness;
  }
  return j;
}

void Oracle::Classify(TraceEntry& now, Effects& effects) const {
  if (now.kind == TraceEntry::Kind::kRule && IsOtherMode(rule(), now.rule)) {
    const std::optional<Step> begun = trace_.LargestAllowed();
    if (begun.has_value()) now.step = std::max(now.step, *begun + 1);
  }
  if (now.kind == TraceEntry::Kind::kPush) return ClassifyPush(now, effects);
  if (now.kind != TraceEntry::Kind::kRead) return;
  if (const auto rejected = RejectSender(now)) {
    effects.judgement.emplace();
    effects.judgement->worker = now.worker;
    effects.judgement->incarnation = now.incarnation;
    effects.judgement->step = now.step;
    effects.judgement->verdict = *rejected;
    return;
  }
  now.heard = true;
  now.read = now.step;
}

void Oracle::ClassifyPush(TraceEntry& now, Effects& effects) const {
  effects.judgement = JudgePush(now);
  const Verdict verdict = effects.judgement->verdict;
  now.heard = verdict != Verdict::kStale && verdict != Verdict::kFenced;
  if (!now.heard || verdict == Verdict::kEarly) return;
  now.read = now.step + 1;
  if (effects.judgement->again || verdict == Verdict::kRepeat) return;
  now.finished = verdict;
  now.has_gradient = verdict == Verdict::kAccept && now.push.examples > 0;
  now.staleness = effects.judgement->staleness;
}

bool Oracle::ChangeRule() {
  const std::optional<size_t> next = trace_.NextRule();
  if (!next.has_value()) return false;
  if (open() && frontier() < trace_.entries()[*next].step) return false;
  const Rule to = trace_.entries()[*next].rule;
  if (IsOtherMode(rule(), to) && !trace_.PendingGradients().empty()) UpdateFromPending();
  trace_.newest().in_force = to;
  return true;
}

void Oracle::UpdateFromPending(const std::optional<SquareSums>& sums) {
  Expected update;
  if (options_.shares_tensor) {
    update.measured = sums;
  } else if (sums.has_value()) {
    update.factor = std::min(1.0, options_.clip_norm / std::sqrt(sums->update));
  }
  update.sum.resize(options_.value_count);
  double rate_sum = 0, examples = 0;
  for (const TraceEntry& m : trace_.entries()) {
    if (m.update != 0) update.examples_before += m.push.examples;
  }
  for (const size_t index : trace_.PendingGradients()) {
    const PushEvent& push = trace_.at(index).push;
    const std::vector<float> values = Values(push.payload);
    const uint64_t staleness = trace_.at(index).staleness;
    const bool scales = options_.staleness.policy == StalenessPolicy::kScale && staleness > 1;
    const double divisor = scales ? static_cast<double>(staleness) : 1;
    for (size_t i = 0; i < values.size(); ++i) {
      update.sum[i] += double{values[i]} * push.examples / divisor;
    }
    update.weight += uint64_t{push.examples} + push.late_examples;
    rate_sum += double{push.rate_factor} * push.examples;
    examples += push.examples;
    trace_.at(index).update = updates_.size() + 1;
  }
  update.rate_factor = rate_sum / examples;
  updates_.push_back(update);
}

void Oracle::Open(Effects& effects) {
  if (open() || !trace_.Contains(TraceEntry::Kind::kSeed)) return;
  if (trace_.LiveWorkers().size() < WorkersToOpen()) return;
  trace_.newest().opened = true;
  effects.opened = true;
}

bool Oracle::AnyWorkerFinished(Step round) const {
  for (uint32_t i = 0; i < options_.rule.max_workers; ++i) {
    if (Next(WorkerId{i}) > round) return true;
  }
  return false;
}

void Oracle::CloseRounds(bool all_gone, Effects& effects) {
  for (;;) {
    const Step round = NextFrontier();
    const std::vector<WorkerId> live = trace_.LiveWorkers();
    const bool all = !live.empty() && std::all_of(live.begin(), live.end(),
                                                  [&](WorkerId w) { return Next(w) > round; });
    const bool last = all_gone && AnyWorkerFinished(round);
    std::vector<size_t> pending;
    if (held_.empty()) pending = trace_.PendingGradients();
    const bool quorum = !pending.empty() && pending.size() >= rule().quorum;
    if (!all && !last && !quorum) return;
    ClosedRound closed = {round, {}};
    for (const size_t index : pending) closed.accepted.push_back(trace_.at(index).worker);
    std::sort(closed.accepted.begin(), closed.accepted.end());
    held_.push_back(closed);
    if (NeedsSums() && !pending.empty()) {
      effects.full_round = FullRound{round, {.update = SquaredNorm(pending)}};
      if (options_.shares_tensor) {
        effects.full_round->sums.masters = static_cast<double>(updates_.size() + 1);
      }
    }
    if (!NeedsSums() || held_.front().accepted.empty()) EndHeldRounds(std::nullopt, effects);
  }
}

double Oracle::SquaredNorm(const std::vector<size_t>& gradients) const {
  std::vector<double> sum(options_.value_count);
  uint64_t weight = 0;
  for (const size_t index : gradients) {
    const PushEvent& push = trace_.entries()[index].push;
    const std::vector<float> values = Values(push.payload);
    for (size_t i = 0; i < values.size(); ++i) sum[i] += double{values[i]} * push.examples;
    weight += uint64_t{push.examples} + push.late_examples;
  }
  double squares = 0;
  for (const double value : sum) {
    // The mean is rounded to float.
    const float scale = static_cast<float>(1.0 / static_cast<double>(weight));
    const float mean = scale * static_cast<float>(value);
    squares += double{mean} * mean;
  }
  return squares;
}

void Oracle::EndHeldRounds(const std::optional<SquareSums>& sums, Effects& effects) {
  std::vector<ClosedRound>& rounds = effects.rounds;
  for (const ClosedRound& closed : held_) {
    const bool empty = closed.accepted.empty();
    if (empty && !rounds.empty() && rounds.back().accepted.empty()) rounds.pop_back();
    rounds.push_back(closed);
    if (!empty) UpdateFromPending(sums);
    trace_.newest().frontier = closed.step + 1;
  }
  held_.clear();
}

void Oracle::MoveFrontier() {
  std::optional<Step> slowest;
  for (const WorkerId w : trace_.LiveWorkers()) {
    if (!slowest.has_value() || Next(w) < *slowest) slowest = Next(w);
  }
  if (!slowest.has_value() || *slowest <= frontier()) return;
  const bool ssp = rule().slack != kUnboundedSlack;
  if (ssp && !trace_.PendingGradients().empty()) UpdateFromPending();
  trace_.newest().frontier = *slowest;
}

void Oracle::MoveOn(bool all_gone, Effects& effects) {
  if (rule().fold == Fold::kRound) return CloseRounds(all_gone, effects);
  MoveFrontier();
  if (all_gone && !trace_.PendingGradients().empty()) UpdateFromPending();
}

void Oracle::Publish(Step frontier_before, bool rule_changed) {
  const bool by_round = rule().fold == Fold::kRound;
  const bool ssp = !by_round && rule().slack != kUnboundedSlack;
  const size_t live = trace_.LiveWorkers().size();
  const size_t together = options_.publish->every == 0 ? live : options_.publish->every;
  const bool enough = updates_.size() - published_.value >= together;
  const bool promised = ssp && frontier() > frontier_before;
  if (by_round || promised || enough || live == 0 || rule_changed) published_ = version();
}

void Oracle::AnswerReads(Effects& effects) {
  const std::optional<size_t> next = trace_.NextRule();
  for (uint32_t i = 0; i < options_.rule.max_workers; ++i) {
    const std::optional<size_t> read = trace_.WaitingRead(WorkerId{i});
    if (!read.has_value()) continue;
    const TraceEntry& m = trace_.entries()[*read];
    const bool bounded = rule().slack != kUnboundedSlack;
    if (bounded && m.read->value > frontier().value + rule().slack) continue;
    if (next.has_value() && *m.read >= trace_.entries()[*next].step) continue;
    ReadAnswer answer = {WorkerId{i}, m.incarnation, *m.read, m.form, *m.read + rule().in_flight};
    if (rule().fold == Fold::kPush && bounded) {
      answer.last = std::min(answer.last, frontier() + rule().slack);
    }
    if (next.has_value()) {
      answer.last = std::min(answer.last, Step{trace_.entries()[*next].step.value - 1});
    }
    answer.holds_pushes = rule().fold == Fold::kRound && answer.last > answer.step;
    effects.answers.push_back(answer);
  }
  trace_.newest().answers = effects.answers;
}

JoinAnswer Oracle::AnswerJoin(WorkerId worker) const {
  JoinAnswer join;
  const std::optional<size_t> join_index = trace_.LastJoin(worker);
  if (join_index.has_value()) join.incarnation = trace_.entries()[*join_index].incarnation;
  join.open = open();
  join.by_round = rule().fold == Fold::kRound;
  join.seeded = trace_.Contains(TraceEntry::Kind::kSeed);
  join.frontier = NextFrontier();
  join.predecessor_next = Next(worker);
  for (uint32_t i = 0; i < options_.rule.max_workers; ++i) {
    join.largest_next = std::max(join.largest_next, Next(WorkerId{i}));
  }
  return join;
}

Effects Oracle::Apply(const Event& event) {
  Effects effects;
  const bool had_live = !trace_.LiveWorkers().empty();
  const Step frontier_before = frontier();
  TraceEntry now = TraceEntry::Of(event);
  Classify(now, effects);
  trace_.Add(now);

  const bool by_push = rule().fold == Fold::kPush;
  if (by_push && trace_.PendingGradients().size() >= rule().fold_every) UpdateFromPending();
  bool rule_changed = ChangeRule();
  Open(effects);
  const bool all_gone = had_live && trace_.LiveWorkers().empty();
  const bool sums = now.kind == TraceEntry::Kind::kSum;
  if (sums && !held_.empty() && held_.front().step == now.step) EndHeldRounds(now.sums, effects);
  if (open()) MoveOn(all_gone, effects);
  if (open() && ChangeRule()) {
    rule_changed = true;
    MoveOn(all_gone, effects);
  }
  if (open() && options_.publish.has_value()) Publish(frontier_before, rule_changed);
  if (open()) AnswerReads(effects);

  if (effects.judgement.has_value()) {
    effects.judgement->frontier = NextFrontier();
    effects.judgement->version = version();
  }
  if (now.kind == TraceEntry::Kind::kJoin) effects.join = AnswerJoin(now.worker);
  return effects;
}

std::vector<BlockedRead> Oracle::BlockedReads() const {
  std::vector<BlockedRead> waits;
  for (uint32_t i = 0; i < options_.rule.max_workers; ++i) {
    const std::optional<size_t> read = trace_.WaitingRead(WorkerId{i});
    if (!read.has_value()) continue;
    BlockedRead wait;
    wait.worker = WorkerId{i};
    wait.incarnation = trace_.entries()[*read].incarnation;
    wait.step = *trace_.entries()[*read].read;
    wait.frontier = frontier();
    wait.unseeded = !trace_.Contains(TraceEntry::Kind::kSeed);
    const std::vector<WorkerId> live = trace_.LiveWorkers();
    if (!open()) {
      wait.live = static_cast<uint32_t>(live.size());
      wait.wanted = WorkersToOpen();
    } else if (held_.empty()) {
      for (const WorkerId w : live) {
        if (Next(w) <= frontier()) wait.unfinished.push_back(w);
      }
    }
    waits.push_back(wait);
  }
  return waits;
}

}  // namespace thinwire

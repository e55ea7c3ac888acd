#include "server/core/testing/shard_states.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "server/core/testing/event_trace.h"

namespace thinwire {
namespace {

ShardOptions OptionsOf(const Rule& rule, bool sums) {
  ShardOptions options;
  options.value_count = 1;
  options.rule = rule;
  // A limit that no gradient exceeds: only the waits are explored.
  if (sums) options.clip_norm = std::numeric_limits<float>::max();
  return options;
}

SeedEvent Seed() { return SeedEvent{Fp32Payload({0})}; }

// Returns the gradients in the sum of a shard's updates. RecordingOptimizer subtracts each sum from
// the master.
uint32_t AppliedGradients(const Shard& shard) { return static_cast<uint32_t>(-shard.masters()[0]); }

uint32_t PendingGradients(const Oracle& oracle) {
  uint32_t pending = 0;
  for (const size_t i : oracle.trace().PendingGradients()) {
    pending += static_cast<uint32_t>(Values(oracle.trace().entries()[i].push.payload)[0]);
  }
  return pending;
}

}  // namespace

Event ExploredEvent::ToEvent(const Rule& next_rule) const {
  const FakeWorker sender = {WorkerId{worker}, Incarnation{incarnation}};
  switch (kind) {
    case Kind::kJoin:
      return sender.Join();
    case Kind::kRead:
      return sender.Read(step);
    case Kind::kPush: {
      PushEvent push = sender.Push(step, 1, {static_cast<float>(gradients)});
      push.late_examples = late_examples;
      return push;
    }
    case Kind::kExpire:
      return sender.Expire();
    case Kind::kReturn:
      return sender.Return();
    case Kind::kOpen:
      return OpenEvent{};
    case Kind::kLeave:
      return sender.Leave();
    case Kind::kRule:
      return RuleEvent{next_rule, Step{step}};
    case Kind::kSum:
      return SumEvent{Step{step}, {.update = 1}};
  }
  return OpenEvent{};
}

uint64_t ExploredEvent::Pack() const {
  const uint64_t sender = static_cast<uint64_t>(kind) << 6 | uint64_t{incarnation} << 2 | worker;
  const uint64_t push = uint64_t{gradients} << 4 | late_examples;
  return sender << 32 | uint64_t{step} << 28 | push;
}

std::string ExploredEvent::ToString() const {
  std::ostringstream out;
  out << ToEvent();
  if (kind == Kind::kPush) out << " gradients " << gradients;
  return out.str();
}

ShardStates::ShardStates(const Rule& rule, const Rule& next_rule, bool sums)
    : options_(OptionsOf(rule, sums)), next_rule_(next_rule) {
  State start = {Oracle(options_), {}, 0};
  start.oracle.Apply(Seed());
  by_key_[KeyOf(start)] = 0;
  states_.push_back(std::move(start));
}

uint32_t ShardStates::pending(uint32_t state) const {
  return PendingGradients(states_[state].oracle);
}

const ShardStates::Transition& ShardStates::Apply(uint32_t from, const ExploredEvent& event) {
  // Pack needs 43 bits.
  std::unique_ptr<Transition>& known = transitions_[uint64_t{from} << 43 | event.Pack()];
  if (known == nullptr) known = std::make_unique<Transition>(Compute(from, event));
  return *known;
}

ShardStates::Transition ShardStates::Compute(uint32_t from, const ExploredEvent& event) {
  const State& before = states_[from];
  const RecordingOptimizer optimizer;
  Shard shard(options_, optimizer, schedule_);
  shard.Apply(Seed());
  for (const ExploredEvent& earlier : before.events) shard.Apply(earlier.ToEvent(next_rule_));
  Transition transition;
  transition.effects = shard.Apply(event.ToEvent(next_rule_));

  State after = before;
  after.events.push_back(event);
  const Effects expected = after.oracle.Apply(event.ToEvent(next_rule_));
  const std::optional<Judgement>& judgement = transition.effects.judgement;
  if (event.kind == ExploredEvent::Kind::kPush && judgement.has_value() && !judgement->again &&
      judgement->verdict == Verdict::kAccept) {
    Require((after.accepted & event.gradients) == 0, "a gradient was accepted twice", after);
    after.accepted |= event.gradients;
  }
  Require(transition.effects == expected, "the effects differ from those of the oracle", after);
  Check(before, event, transition.effects, shard, after);

  const auto [place, is_new] = by_key_.try_emplace(KeyOf(after), states_.size());
  if (is_new) states_.push_back(std::move(after));
  transition.to = place->second;
  return transition;
}

void ShardStates::Check(const State& before, const ExploredEvent& event, const Effects& effects,
                        const Shard& shard, const State& after) {
  const Oracle& oracle = after.oracle;
  Require(shard.frontier() == oracle.frontier() && shard.open() == oracle.open() &&
              shard.rule() == oracle.rule() && shard.version() == oracle.version() &&
              shard.BlockedReads() == oracle.BlockedReads(),
          "the state differs from that of the oracle", after);
  Require(shard.frontier() >= before.oracle.frontier(), "the frontier fell", after);
  if (event.kind == ExploredEvent::Kind::kPush) {
    Require(effects.judgement.has_value() && effects.judgement->worker.value == event.worker &&
                effects.judgement->incarnation.value == event.incarnation &&
                effects.judgement->step.value == event.step,
            "a push has no verdict", after);
  }
  const uint32_t pending = PendingGradients(oracle);
  Require((AppliedGradients(shard) & pending) == 0 &&
              (AppliedGradients(shard) | pending) == after.accepted,
          "applied and pending gradients are not the accepted gradients", after);
  CheckAnswers(effects, shard, after);
}

void ShardStates::CheckAnswers(const Effects& effects, const Shard& shard, const State& after) {
  for (size_t i = 0; i < effects.answers.size(); ++i) {
    const ReadAnswer& answer = effects.answers[i];
    Require(i == 0 || effects.answers[i - 1].worker < answer.worker, "a read was answered twice",
            after);
    const uint64_t slack = after.oracle.rule().slack;
    if (slack == kUnboundedSlack) continue;
    const Step last = after.oracle.rule().fold == Fold::kPush ? answer.last : answer.step;
    Require(last.value <= shard.frontier().value + slack, "an answer exceeds the staleness bound",
            after);
    for (const size_t pending : after.oracle.trace().PendingGradients()) {
      Require(after.oracle.trace().entries()[pending].step >= shard.frontier(),
              "an answer lacks a gradient of a step below the frontier", after);
    }
  }
}

void ShardStates::Require(bool holds, const char* claim, const State& after) {
  if (holds) return;
  std::string text = absl::StrCat(claim, " after");
  for (const ExploredEvent& event : after.events) absl::StrAppend(&text, "\n  ", event.ToString());
  violations_.push_back(std::move(text));
}

// Returns a text that is equal for two states if and only if all later events have the same
// effects, apart from versions.
std::string ShardStates::KeyOf(const State& state) const {
  const EventTrace& trace = state.oracle.trace();
  std::string key = absl::StrCat(trace.Opened(), trace.Contains(TraceEntry::Kind::kOpen), " ",
                                 trace.Frontier().value, " ", state.oracle.NextFrontier().value,
                                 " ", state.accepted);
  if (trace.RuleInForce().has_value()) key += " changed";
  if (const std::optional<size_t> next = trace.NextRule()) {
    absl::StrAppend(&key, " changes at ", trace.entries()[*next].step.value);
  }
  for (const size_t i : trace.PendingGradients()) {
    const TraceEntry& entry = trace.entries()[i];
    absl::StrAppend(&key, ",", entry.worker.value, ".", entry.step.value);
  }
  for (uint32_t w = 0; w < options_.rule.workers; ++w) {
    const WorkerId worker{w};
    absl::StrAppend(&key, ";", trace.Next(worker).value);
    const std::optional<size_t> join = trace.LastJoin(worker);
    if (!join.has_value()) continue;
    std::optional<Step> largest_read;
    for (size_t i = *join; i < trace.entries().size(); ++i) {
      const TraceEntry& entry = trace.entries()[i];
      if (entry.worker == worker && entry.read.has_value()) {
        largest_read = std::max(largest_read.value_or(Step{0}), *entry.read);
      }
    }
    const std::optional<size_t> push = trace.LastFinishingPush(worker);
    const std::optional<size_t> waiting = trace.WaitingRead(worker);
    absl::StrAppend(&key, " ", trace.entries()[*join].incarnation.value, trace.Left(worker),
                    trace.Live(worker), largest_read.has_value() ? 1 + largest_read->value : 0);
    for (Step step; push.has_value() && step <= trace.entries()[*push].step; ++step) {
      const std::optional<Verdict> known = trace.KnownVerdict(worker, step);
      absl::StrAppend(&key, "p", known.has_value() ? static_cast<int>(*known) : 0);
    }
    if (const std::optional<Step> allowed = trace.Allowed(worker)) {
      absl::StrAppend(&key, "a", allowed->value);
    }
    if (waiting.has_value()) absl::StrAppend(&key, "r", trace.entries()[*waiting].read->value);
  }
  return key;
}

}  // namespace thinwire

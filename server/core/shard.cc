#include "server/core/shard.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "server/core/judge.h"
#include "server/core/publish/delta_publisher.h"
#include "server/core/publish/publisher.h"
#include "server/core/rounds.h"
#include "server/core/staleness/dcasgd.h"
#include "server/core/staleness/drop.h"
#include "server/core/staleness/scale.h"
#include "server/core/update/accumulator.h"
#include "server/core/update/store.h"
#include "server/core/worker_table.h"

namespace thinwire {
namespace {

// Checks the fields of SNAPSHOT that the parts of a shard cannot check alone.
absl::Status CheckSnapshot(const ShardSnapshot& snapshot, bool publishes) {
  const std::optional<PublishedSnapshot>& published = snapshot.published;
  if (published.has_value() != publishes) {
    return absl::InvalidArgumentError(publishes ? "published: missing"
                                                : "published: the job publishes no deltas");
  }
  if (publishes && published->version > snapshot.store.version) {
    return absl::InvalidArgumentError(
        absl::StrCat("published version: too large (expected at most ",
                     snapshot.store.version.value, ", got ", published->version.value, ")"));
  }
  for (const WorkerRecord& row : snapshot.workers) {
    if (!publishes && row.waiting.has_value() && row.waiting->form.published) {
      return absl::InvalidArgumentError("a read of deltas waits: the job publishes no deltas");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRule(const Rule& rule, const Rule& first) {
  if (rule.Validate().empty() && rule.max_workers == first.max_workers) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("rule: not valid for at most ", first.max_workers,
                                                 " workers (got ", rule.workers, " workers)"));
}

// Returns whether gradients are folded, or workers wait, in another way after a change from one
// rule to the other. Other changes are safe in the middle of a step.
bool ChangesMode(const Rule& from, const Rule& to) {
  return from.fold != to.fold || from.slack != to.slack || from.fold_every != to.fold_every;
}

// Returns the decay of MeanSquares.
double DecayOf(const StalenessSpec& spec) {
  return spec.policy == StalenessPolicy::kDcasgd ? spec.decay : 0;
}

}  // namespace

// An event is applied in two phases. Handle judges the event and records it in the worker table and
// the accumulator. Advance then opens the shard, closes rounds, applies updates, and answers reads
// as the new state requires.
struct Shard::State {
  State(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule)
      : relayed(options.relayed),
        relayed_until(options.relayed_until),
        rule(options.rule),
        first_rule(options.rule),
        generation(options.generation),
        staleness_spec(options.staleness),
        mean_squares(options.value_count, DecayOf(options.staleness), options.memory),
        workers(options.rule.max_workers),
        accumulator(options.value_count, options.sparse_updates.WantsSparse(), options.memory),
        store(options.value_count, options.planned_examples, optimizer, schedule,
              options.sparse_updates, options.memory, options.tensor_sizes),
        rounds({.workers = workers, .accumulator = accumulator, .store = store},
               {.clip_norm = options.clip_norm,
                .shares_tensor = options.shares_tensor,
                .holds_average = optimizer.holds_average(),
                .relayed = options.relayed}),
        publish_every(options.publish.value_or(PublishOptions()).every) {
    if (options.publish.has_value()) deltas.emplace(*options.publish, options.memory);
  }

  void Handle(const SeedEvent& event, Effects& effects);
  void Handle(const JoinEvent& event, Effects& effects);
  void Handle(const ReadEvent& event, Effects& effects);
  void Handle(const PushEvent& event, Effects& effects);
  void Handle(const ExpireEvent& event, Effects& effects);
  void Handle(const ReturnEvent& event, Effects& effects);
  void Handle(const OpenEvent& event, Effects& effects);
  void Handle(const LeaveEvent& event, Effects& effects);
  void Handle(const RuleEvent& event, Effects& effects);
  void Handle(const ShutEvent& event, Effects& effects);
  void Handle(const SumEvent& event, Effects& effects);
  void Handle(const PlanEvent& event, Effects& effects);
  void Handle(const UpdateEvent& event, Effects& effects);
  // Folds the gradient of an accepted push, adjusted by the staleness policy. Sets
  // judgement.uncompensated.
  void FoldPush(const PushEvent& push, Judgement& judgement);
  // Returns the gradient of PUSH with delay compensation, or nullopt if the version log does not
  // lead to its parameters.
  std::optional<CheckedPayload> CompensatedGradient(const PushEvent& push) const;

  void Advance(bool had_live, Effects& effects);
  // Puts `next_rule` in force if its step is reached or the shard is shut. Returns whether it did.
  bool ChangeRuleIfDue();
  void OpenIfReady(Effects& effects);
  // Moves the frontier, and applies updates, as far as the rule and the events so far allow.
  // LAST_DEPARTED: the event ended the liveness of the last live worker.
  void MoveOn(bool last_departed, Effects& effects);
  // Answers the reads that the rule permits.
  std::vector<ReadAnswer> AnswerReads();
  void MoveFrontier();
  // Applies the accumulated gradients as an update, even if there are fewer than `fold_every`, the
  // usual number of gradients per update.
  void UpdateEarly();
  void PublishIfDue(Step frontier_before, bool rule_changed);
  void FillReplies(Effects& effects) const;

  JudgeInput JudgeInputOf(WorkerId worker) const;
  template <typename Sent>
  Judgement JudgementOf(const Sent& sent, const Decision& decision) const;
  BlockedRead BlockedReadOf(WorkerId worker) const;
  // Returns the number of live workers at which the shard opens, that is, begins to accept pushes.
  uint32_t wanted() const { return start_timed_out ? 1 : rule.workers; }

  const bool relayed;
  const Step relayed_until;
  Rule rule;
  const Rule first_rule;
  std::optional<RuleEvent> next_rule;  // in an open shard, its step is above the frontier
  const Generation generation;
  const StalenessSpec staleness_spec;
  MeanSquares mean_squares;

  bool open = false;
  bool start_timed_out = false;  // can become true before the seed or any worker arrives
  WorkerTable workers;
  Accumulator accumulator;
  Store store;
  Rounds rounds;
  Publisher publisher;
  const uint64_t publish_every;
  std::optional<DeltaPublisher> deltas;
};

void Shard::State::Handle(const SeedEvent& event, Effects&) {
  if (store.seeded()) return;
  store.Seed(event.payload);
  if (deltas.has_value()) deltas->Start(store.version(), store.masters());
}

void Shard::State::Handle(const JoinEvent& event, Effects& effects) {
  workers.Join(event.worker, event.incarnation);
  effects.join.emplace();
  effects.join->incarnation = workers.of(event.worker).incarnation;
  effects.join->predecessor_next = workers.of(event.worker).next;
}

void Shard::State::Handle(const ReadEvent& event, Effects& effects) {
  const JudgeInput input = JudgeInputOf(event.worker);
  if (const auto verdict = JudgeSender(input, event.generation, event.incarnation)) {
    effects.judgement = JudgementOf(event, {*verdict});
    return;
  }
  workers.MarkHeard(event.worker);
  workers.Read(event.worker, {event.step, event.form});
}

void Shard::State::Handle(const PushEvent& event, Effects& effects) {
  const Decision decision = Judge(JudgeInputOf(event.worker), event);
  Judgement& judgement = effects.judgement.emplace(JudgementOf(event, decision));
  const uint64_t staleness = StalenessOf(event, store.version());
  if (decision == Decision{Verdict::kAccept}) judgement.staleness = staleness;
  if (decision == Decision{Verdict::kRefused}) {
    judgement.dropped = IsTooStale(staleness_spec, staleness);
  }
  if (decision.verdict == Verdict::kStale || decision.verdict == Verdict::kFenced) return;
  workers.MarkHeard(event.worker);
  if (decision.verdict == Verdict::kEarly) return;
  const bool judged_now = !decision.again && decision.verdict != Verdict::kRepeat;
  if (judged_now) workers.Finish(event.worker, event.step, decision.verdict);
  if (judged_now && decision.verdict == Verdict::kAccept && event.examples != 0) {
    FoldPush(event, judgement);
  }
  workers.Read(event.worker, {StepsAfter(event.step, 1), event.read_form});
}

void Shard::State::Handle(const ExpireEvent& event, Effects&) {
  if (workers.IsCurrent(event.worker, event.incarnation)) workers.Expire(event.worker);
}

void Shard::State::Handle(const ReturnEvent& event, Effects&) {
  if (workers.IsCurrent(event.worker, event.incarnation)) workers.MarkHeard(event.worker);
}

void Shard::State::Handle(const OpenEvent&, Effects&) { start_timed_out = true; }

void Shard::State::Handle(const LeaveEvent& event, Effects&) {
  if (workers.IsCurrent(event.worker, event.incarnation)) workers.Leave(event.worker);
}

void Shard::State::Handle(const RuleEvent& event, Effects&) {
  next_rule = event;
  // A push of a step that has begun could be too far ahead for the new rule.
  if (ChangesMode(rule, event.rule)) {
    next_rule->from = std::max(event.from, workers.FirstNotBegun());
  }
}

void Shard::State::Handle(const ShutEvent&, Effects&) {
  open = false;
  start_timed_out = false;
}

void Shard::State::Handle(const SumEvent& event, Effects&) { rounds.Take(event); }

void Shard::State::Handle(const PlanEvent& event, Effects&) { store.Plan(event.examples); }

void Shard::State::Handle(const UpdateEvent& event, Effects& effects) {
  rounds.Take(event, effects);
}

void Shard::State::FoldPush(const PushEvent& push, Judgement& judgement) {
  Gradient gradient = {.worker = push.worker,
                       .examples = push.examples,
                       .late_examples = push.late_examples,
                       .payload = push.payload,
                       .factor = StalenessFactor(staleness_spec, judgement.staleness),
                       .rate_factor = push.rate_factor};
  mean_squares.Add(push.payload);
  if (staleness_spec.policy == StalenessPolicy::kDcasgd && judgement.staleness > 0) {
    std::optional<CheckedPayload> compensated = CompensatedGradient(push);
    judgement.uncompensated = !compensated.has_value();
    if (compensated.has_value()) gradient.payload = *std::move(compensated);
  }
  if (rule.fold == Fold::kRound) rounds.Measure(gradient, rule.quorum);
  if (rule.ordered_fold) {
    accumulator.Hold(std::move(gradient));
    return;
  }
  accumulator.Fold(std::move(gradient));
  if (rule.fold == Fold::kPush && accumulator.count() >= rule.fold_every) store.Apply(accumulator);
}

std::optional<CheckedPayload> Shard::State::CompensatedGradient(const PushEvent& push) const {
  const std::optional<std::vector<float>> then = deltas->PublishedAt(push.computed_version);
  if (!then.has_value()) return std::nullopt;
  return Compensated(push.payload, store.masters(), *then, staleness_spec.lambda, mean_squares,
                     LargestAccepted(push.examples, rule.MostFolded()));
}

void Shard::State::Advance(bool had_live, Effects& effects) {
  const Step frontier_before = workers.frontier();
  bool changed = ChangeRuleIfDue();
  if (!open) OpenIfReady(effects);
  if (open) {
    const bool last_departed = had_live && workers.live_count() == 0;
    MoveOn(last_departed, effects);
    if (ChangeRuleIfDue()) {
      changed = true;
      MoveOn(last_departed, effects);
    }
    if (deltas.has_value()) PublishIfDue(frontier_before, changed);
    effects.answers = AnswerReads();
  }
  accumulator.FoldSingle();
  FillReplies(effects);
}

bool Shard::State::ChangeRuleIfDue() {
  if (!next_rule.has_value()) return false;
  if (open && next_rule->from > workers.frontier()) return false;
  if (ChangesMode(rule, next_rule->rule)) {
    accumulator.FoldInOrder([](WorkerId) { return false; });
    UpdateEarly();
  }
  rule = next_rule->rule;
  next_rule.reset();
  return true;
}

void Shard::State::MoveOn(bool last_departed, Effects& effects) {
  if (rule.fold == Fold::kRound) return rounds.Close(rule.quorum, last_departed, effects);
  MoveFrontier();
  if (last_departed) UpdateEarly();
}

std::vector<ReadAnswer> Shard::State::AnswerReads() {
  // The steps from the change on begin under the new rule.
  const Step most = next_rule.has_value() ? Step{next_rule->from.value - 1}
                                          : Step{std::numeric_limits<uint64_t>::max()};
  const Step last = std::min(StepsAfter(workers.frontier(), rule.slack), most);
  const bool by_round = rule.fold == Fold::kRound;
  std::vector<ReadAnswer> answers =
      workers.ReleaseReads(last, rule.in_flight, by_round ? most : last);
  for (ReadAnswer& answer : answers) answer.holds_pushes = by_round && answer.last > answer.step;
  return answers;
}

void Shard::State::OpenIfReady(Effects& effects) {
  open = store.seeded() && workers.live_count() >= wanted() && rounds.HasMasters(effects);
  effects.opened = open;
}

void Shard::State::MoveFrontier() {
  const std::optional<Step> smallest = workers.SmallestLiveNext();
  if (!smallest.has_value() || *smallest <= workers.frontier()) return;
  // In ssp, a reader must receive every accepted gradient of the steps below the frontier.
  if (rule.slack != kUnboundedSlack) UpdateEarly();
  workers.MoveFrontier(*smallest);
}

void Shard::State::UpdateEarly() {
  if (accumulator.count() > 0) store.Apply(accumulator);
}

// In sync and backup, publishes when a round closes. In ssp, publishes whenever the frontier moves,
// because a reader must receive every accepted gradient of the steps below the frontier. Also
// publishes after every `publish_every` updates (if publish_every is 0: after as many updates as
// there are live workers), when no worker is live, and when a new rule is in force.
void Shard::State::PublishIfDue(Step frontier_before, bool rule_changed) {
  const uint64_t unpublished = store.version() - deltas->version();
  if (unpublished == 0) return;
  const uint64_t live = workers.live_count();
  const bool promised = rule.slack != kUnboundedSlack && workers.frontier() > frontier_before;
  const bool gathered = unpublished >= (publish_every != 0 ? publish_every : live);
  if (promised || gathered || live == 0 || rule_changed)
    deltas->Publish(store.version(), store.masters());
}

void Shard::State::FillReplies(Effects& effects) const {
  if (effects.judgement.has_value()) {
    effects.judgement->frontier = rounds.next_frontier();
    effects.judgement->version = store.version();
  }
  if (effects.join.has_value()) {
    effects.join->open = open;
    effects.join->seeded = store.seeded();
    effects.join->frontier = rounds.next_frontier();
    effects.join->largest_next = workers.LargestNext();
    effects.join->by_round = rule.fold == Fold::kRound;
  }
}

JudgeInput Shard::State::JudgeInputOf(WorkerId worker) const {
  return {.generation = generation,
          .worker = workers.of(worker),
          .frontier = rounds.next_frontier(),
          .slack = rule.slack,
          .open = open && !rounds.full(),
          .max_folded = rule.MostFolded(),
          .version = store.version(),
          .staleness = staleness_spec};
}

template <typename Sent>
Judgement Shard::State::JudgementOf(const Sent& sent, const Decision& decision) const {
  Judgement judgement;
  judgement.worker = sent.worker;
  judgement.incarnation = sent.incarnation;
  judgement.step = sent.step;
  judgement.verdict = decision.verdict;
  judgement.again = decision.again;
  return judgement;
}

BlockedRead Shard::State::BlockedReadOf(WorkerId worker) const {
  BlockedRead wait;
  wait.worker = worker;
  wait.incarnation = workers.of(worker).incarnation;
  wait.step = workers.of(worker).waiting->step;
  wait.frontier = workers.frontier();
  wait.unseeded = !store.seeded();
  if (open) {
    if (!rounds.full()) wait.unfinished = workers.UnfinishedWorkers();
  } else if (!relayed || !rounds.full()) {
    wait.live = workers.live_count();
    wait.wanted = wanted();
  }
  return wait;
}

Shard::Shard(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule)
    : state_(std::make_unique<State>(options, optimizer, schedule)) {}

Shard::~Shard() = default;

Effects Shard::Apply(const Event& event) {
  Effects effects;
  const bool had_live = state_->workers.live_count() > 0;
  std::visit([&](const auto& e) { state_->Handle(e, effects); }, event);
  state_->Advance(had_live, effects);
  return effects;
}

ByteChain Shard::Encoded(CodecId codec) {
  if (codec == CodecId::kFp32) return state_->store.Payload();
  return state_->publisher.Encoded(state_->store.version(), state_->store.masters(), codec);
}

const ByteChain& Shard::selected_list() const { return state_->store.selected_list(); }
DeltaChain Shard::Deltas(std::optional<Version> held) { return state_->deltas->DeltasSince(held); }
std::shared_ptr<const VersionLog> Shard::log() const { return state_->deltas->log(); }
std::span<const float> Shard::published() const { return state_->deltas->published(); }

bool Shard::CanSave() const { return state_->store.seeded() && state_->accumulator.count() == 0; }

ShardSnapshot Shard::Save() {
  ShardSnapshot snapshot = {.open = state_->open,
                            .start_timed_out = state_->start_timed_out,
                            .frontier = state_->workers.frontier(),
                            .rule = std::nullopt,
                            .next_rule = state_->next_rule,
                            .workers = state_->workers.rows(),
                            .store = state_->store.Save()};
  if (state_->rule != state_->first_rule) snapshot.rule = state_->rule;
  if (state_->deltas.has_value()) snapshot.published = state_->deltas->Save();
  snapshot.mean_squares = state_->mean_squares.Save();
  return snapshot;
}

absl::Status Shard::Restore(const ShardSnapshot& snapshot) {
  RETURN_IF_ERROR(CheckSnapshot(snapshot, state_->deltas.has_value()));
  if (snapshot.rule.has_value()) RETURN_IF_ERROR(CheckRule(*snapshot.rule, state_->first_rule));
  if (snapshot.next_rule.has_value()) {
    RETURN_IF_ERROR(CheckRule(snapshot.next_rule->rule, state_->first_rule));
    if (!snapshot.open || snapshot.next_rule->from <= snapshot.frontier) {
      return absl::InvalidArgumentError(
          absl::StrCat("next_rule: should be in force (expected a step above ",
                       snapshot.frontier.value, ", got ", snapshot.next_rule->from.value, ")"));
    }
  }
  const Step frontier = std::max(snapshot.frontier, state_->relayed_until);
  RETURN_IF_ERROR(state_->workers.Restore(frontier, snapshot.workers));
  RETURN_IF_ERROR(state_->store.Restore(snapshot.store));
  RETURN_IF_ERROR(state_->mean_squares.Restore(snapshot.mean_squares));
  if (state_->deltas.has_value()) {
    RETURN_IF_ERROR(state_->deltas->Restore(*snapshot.published, state_->store.masters().size()));
  }
  state_->rule = snapshot.rule.value_or(state_->first_rule);
  state_->next_rule = snapshot.next_rule;
  // A relayed shard opens with the newest values of the job that makes the updates.
  state_->open = snapshot.open && !state_->relayed;
  state_->start_timed_out = snapshot.start_timed_out;
  return absl::OkStatus();
}

std::vector<BlockedRead> Shard::BlockedReads() const {
  std::vector<BlockedRead> reads;
  for (const WorkerId worker : state_->workers.Waiting())
    reads.push_back(state_->BlockedReadOf(worker));
  return reads;
}

std::span<const float> Shard::masters() const { return state_->store.masters(); }
std::span<const float> Shard::averages() const { return state_->store.averages(); }
bool Shard::seeded() const { return state_->store.seeded(); }
bool Shard::open() const { return state_->open; }
Version Shard::version() const { return state_->store.version(); }
bool Shard::saturated() const { return state_->store.saturated(); }
uint64_t Shard::saturated_updates() const { return state_->store.saturated_updates(); }
const NoiseEstimate& Shard::noise() const { return state_->rounds.noise(); }
Step Shard::frontier() const { return state_->workers.frontier(); }
bool Shard::full() const { return state_->rounds.full(); }
const Rule& Shard::rule() const { return state_->rule; }
const std::optional<RuleEvent>& Shard::next_rule() const { return state_->next_rule; }
Step Shard::next(WorkerId worker) const { return state_->workers.of(worker).next; }

RelayedPart Shard::CopyRelayed(std::span<float> values) const {
  if (!state_->rounds.updated()) {
    const std::span<const float> masters = state_->store.masters();
    std::copy(masters.begin(), masters.end(), values.begin());
    return {.first = true};
  }
  const Accumulator& sum = state_->accumulator;
  if (sum.count() == 0) {
    std::ranges::fill(values, 0.0f);
    return {};
  }
  const auto scale = static_cast<float>(1.0 / static_cast<double>(sum.weight()));
  sum.ForEachBlock([&](size_t first, std::span<const float> block) {
    for (size_t i = 0; i < block.size(); ++i) values[first + i] = scale * block[i];
  });
  return {.weight = sum.weight(), .rate_factor = sum.rate_factor()};
}

}  // namespace thinwire

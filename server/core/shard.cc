#include "server/core/shard.h"

#include <optional>
#include <utility>
#include <variant>

#include "server/core/accumulator.h"
#include "server/core/delta_publisher.h"
#include "server/core/judge.h"
#include "server/core/progress.h"
#include "server/core/publisher.h"
#include "server/core/store.h"

namespace thinwire {

// An event changes the table of workers (Take); then what follows from the table is done (Settle).
struct Shard::State {
  State(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule)
      : rule(options.rule),
        generation(options.generation),
        progress(options.rule.workers),
        accumulator(options.value_count, options.thinning.WantsSparse(), options.memory),
        store(options.value_count, options.planned_examples, optimizer, schedule, options.thinning,
              options.memory),
        publish_every(options.publish.value_or(PublishOptions()).every) {
    if (options.publish.has_value()) deltas.emplace(*options.publish, options.memory);
  }

  void Take(const SeedEvent& event, Effects& effects);
  void Take(const JoinEvent& event, Effects& effects);
  void Take(const ReadEvent& event, Effects& effects);
  void Take(const PushEvent& event, Effects& effects);
  void Take(const ExpireEvent& event, Effects& effects);
  void Take(const ReturnEvent& event, Effects& effects);
  void Take(const OpenEvent& event, Effects& effects);
  void Take(const LeaveEvent& event, Effects& effects);
  void Give(const PushEvent& push);

  void Settle(bool had_live, Effects& effects);
  void OpenIfReady(Effects& effects);
  void CloseRounds(Effects& effects);
  void CloseRound(Effects& effects);
  void MoveFrontier();
  void UpdateFromRest();
  void PublishIfDue(Step frontier_before);
  void Complete(Effects& effects) const;

  Standing StandingOf(WorkerId worker) const;
  template <typename Sent>
  Judgement JudgementOf(const Sent& sent, const Ruling& ruling) const;
  Wait WaitOf(WorkerId worker) const;
  // How many live workers open the shard.
  uint32_t wanted() const { return open_asked ? 1 : rule.workers; }

  const Rule rule;
  const Generation generation;

  bool open = false;
  bool open_asked = false;  // start_timeout ran out, perhaps before the seed or any worker came
  Progress progress;
  Accumulator accumulator;
  Store store;
  Publisher publisher;
  const uint64_t publish_every;
  std::optional<DeltaPublisher> deltas;
};

void Shard::State::Take(const SeedEvent& event, Effects&) {
  if (store.seeded()) return;
  store.Seed(event.payload);
  if (deltas.has_value()) deltas->Start(store.version(), store.masters());
}

void Shard::State::Take(const JoinEvent& event, Effects& effects) {
  progress.Join(event.worker, event.incarnation);
  effects.join.emplace();
  effects.join->incarnation = progress.of(event.worker).incarnation;
  effects.join->predecessor_next = progress.of(event.worker).next;
}

void Shard::State::Take(const ReadEvent& event, Effects& effects) {
  const Standing standing = StandingOf(event.worker);
  if (const auto verdict = JudgeSender(standing, event.generation, event.incarnation)) {
    effects.judgement = JudgementOf(event, {*verdict});
    return;
  }
  progress.Hear(event.worker);
  progress.Read(event.worker, {event.step, event.form});
}

void Shard::State::Take(const PushEvent& event, Effects& effects) {
  const Ruling ruling = Judge(StandingOf(event.worker), event);
  effects.judgement = JudgementOf(event, ruling);
  // A version from the future is a peer's mistake, not a staleness.
  if (ruling == Ruling{Verdict::kAccept} && event.computed_version < store.version()) {
    effects.judgement->staleness = store.version() - event.computed_version;
  }
  if (ruling.verdict == Verdict::kStale || ruling.verdict == Verdict::kFenced) return;
  progress.Hear(event.worker);
  if (ruling.verdict == Verdict::kEarly) return;
  const bool judged_now = !ruling.again && ruling.verdict != Verdict::kRepeat;
  if (judged_now) progress.Finish(event.worker, event.step, ruling.verdict);
  if (judged_now && ruling.verdict == Verdict::kAccept && event.examples != 0) Give(event);
  progress.Read(event.worker, {StepsAfter(event.step, 1), event.read_form});
}

void Shard::State::Take(const ExpireEvent& event, Effects&) {
  if (progress.IsCurrent(event.worker, event.incarnation)) progress.Expire(event.worker);
}

void Shard::State::Take(const ReturnEvent& event, Effects&) {
  if (progress.IsCurrent(event.worker, event.incarnation)) progress.Hear(event.worker);
}

void Shard::State::Take(const OpenEvent&, Effects&) { open_asked = true; }

void Shard::State::Take(const LeaveEvent& event, Effects&) {
  if (progress.IsCurrent(event.worker, event.incarnation)) progress.Leave(event.worker);
}

void Shard::State::Give(const PushEvent& push) {
  Gradient gradient = {push.worker, push.examples, push.late_examples, push.payload};
  if (rule.ordered_fold) {
    accumulator.Keep(std::move(gradient));
    return;
  }
  accumulator.Fold(std::move(gradient));
  if (rule.fold == Fold::kPush && accumulator.count() >= rule.fold_every) store.Apply(accumulator);
}

void Shard::State::Settle(bool had_live, Effects& effects) {
  if (!open) OpenIfReady(effects);
  if (open) {
    const Step frontier_before = progress.frontier();
    if (rule.fold == Fold::kRound) {
      CloseRounds(effects);
    } else {
      MoveFrontier();
      if (had_live && progress.live_count() == 0) UpdateFromRest();
    }
    if (deltas.has_value()) PublishIfDue(frontier_before);
    effects.answers = progress.TakeReads(StepsAfter(progress.frontier(), rule.slack));
  }
  accumulator.FoldLone();
  Complete(effects);
}

void Shard::State::OpenIfReady(Effects& effects) {
  open = store.seeded() && progress.live_count() >= wanted();
  effects.opened = open;
}

void Shard::State::CloseRounds(Effects& effects) {
  accumulator.FoldTurns([this](WorkerId worker) { return progress.MayPushFrontier(worker); });
  for (;;) {
    const std::optional<Step> smallest = progress.SmallestLiveNext();
    const bool all = smallest.has_value() && *smallest > progress.frontier();
    const bool given = accumulator.count() > 0;
    const bool quorum = given && accumulator.count() >= rule.quorum;
    if (!all && !quorum) return;
    if (given) {
      CloseRound(effects);
    } else {
      // In one leap: how far a worker reads ahead is its own choice.
      effects.rounds.push_back({Step{smallest->value - 1}, {}});
      progress.MoveFrontier(*smallest);
    }
  }
}

void Shard::State::CloseRound(Effects& effects) {
  effects.rounds.push_back({progress.frontier(), accumulator.Givers()});
  // Whoever has not given by now is too late: the turns of all that is held have come.
  accumulator.FoldTurns([](WorkerId) { return false; });
  store.Apply(accumulator);
  progress.MoveFrontier(StepsAfter(progress.frontier(), 1));
}

void Shard::State::MoveFrontier() {
  const std::optional<Step> smallest = progress.SmallestLiveNext();
  if (!smallest.has_value() || *smallest <= progress.frontier()) return;
  // ssp promises a reader every step below the frontier.
  if (rule.slack != kUnboundedSlack) UpdateFromRest();
  progress.MoveFrontier(*smallest);
}

void Shard::State::UpdateFromRest() {
  if (accumulator.count() > 0) store.Apply(accumulator);
}

// A round is published as it closes, and in ssp whatever its moving frontier promises the readers.
// Else so many updates are gathered, as long as there is somebody to make more.
void Shard::State::PublishIfDue(Step frontier_before) {
  const uint64_t fresh = store.version() - deltas->version();
  if (fresh == 0) return;
  const uint64_t live = progress.live_count();
  const bool promised = rule.slack != kUnboundedSlack && progress.frontier() > frontier_before;
  const bool gathered = fresh >= (publish_every != 0 ? publish_every : live);
  if (promised || gathered || live == 0) deltas->Publish(store.version(), store.masters());
}

void Shard::State::Complete(Effects& effects) const {
  if (effects.judgement.has_value()) {
    effects.judgement->frontier = progress.frontier();
    effects.judgement->version = store.version();
  }
  if (effects.join.has_value()) {
    effects.join->open = open;
    effects.join->seeded = store.seeded();
    effects.join->frontier = progress.frontier();
    effects.join->largest_next = progress.LargestNext();
  }
}

Standing Shard::State::StandingOf(WorkerId worker) const {
  return {.generation = generation,
          .worker = progress.of(worker),
          .frontier = progress.frontier(),
          .slack = rule.slack,
          .open = open,
          .most_folded = rule.MostFolded()};
}

template <typename Sent>
Judgement Shard::State::JudgementOf(const Sent& sent, const Ruling& ruling) const {
  Judgement judgement;
  judgement.worker = sent.worker;
  judgement.incarnation = sent.incarnation;
  judgement.step = sent.step;
  judgement.verdict = ruling.verdict;
  judgement.again = ruling.again;
  return judgement;
}

Wait Shard::State::WaitOf(WorkerId worker) const {
  Wait wait;
  wait.worker = worker;
  wait.incarnation = progress.of(worker).incarnation;
  wait.step = progress.of(worker).waiting->step;
  wait.frontier = progress.frontier();
  wait.unseeded = !store.seeded();
  if (open) {
    wait.unfinished = progress.HoldingFrontier();
  } else {
    wait.live = progress.live_count();
    wait.wanted = wanted();
  }
  return wait;
}

Shard::Shard(const ShardOptions& options, const Optimizer& optimizer, const Schedule& schedule)
    : state_(std::make_unique<State>(options, optimizer, schedule)) {}

Shard::~Shard() = default;

Effects Shard::Apply(const Event& event) {
  Effects effects;
  const bool had_live = state_->progress.live_count() > 0;
  std::visit([&](const auto& e) { state_->Take(e, effects); }, event);
  state_->Settle(had_live, effects);
  return effects;
}

ByteChain Shard::Encoded(CodecId codec) {
  if (codec == CodecId::kFp32) return state_->store.Payload();
  return state_->publisher.Encoded(state_->store.version(), state_->store.masters(), codec);
}

const ByteChain& Shard::taken_list() const { return state_->store.taken_list(); }
DeltaChain Shard::Deltas(std::optional<Version> held) { return state_->deltas->Answer(held); }
std::shared_ptr<const VersionLog> Shard::log() const { return state_->deltas->log(); }
std::span<const float> Shard::published() const { return state_->deltas->published(); }

std::vector<Wait> Shard::Waits() const {
  std::vector<Wait> waits;
  for (const WorkerId worker : state_->progress.Waiting()) waits.push_back(state_->WaitOf(worker));
  return waits;
}

std::span<const float> Shard::masters() const { return state_->store.masters(); }
bool Shard::seeded() const { return state_->store.seeded(); }
bool Shard::open() const { return state_->open; }
Version Shard::version() const { return state_->store.version(); }
Step Shard::frontier() const { return state_->progress.frontier(); }
Step Shard::next(WorkerId worker) const { return state_->progress.of(worker).next; }

}  // namespace thinwire

#include "server/core/testing/cluster_transitions.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using EventKind = ExploredEvent::Kind;

}  // namespace

bool ClusterTransitions::Cluster::operator==(const Cluster& other) const {
  static_assert(std::has_unique_object_representations_v<Cluster>);
  return std::memcmp(this, &other, sizeof(Cluster)) == 0;
}

ClusterTransitions::ClusterTransitions(const ExplorationOptions& options)
    : options_(options),
      shards_(options.rule, options.change.value_or(RuleEvent{}).rule, options.sums) {}

ClusterTransitions::Cluster ClusterTransitions::Start() {
  Cluster start = {};
  for (Process& process : start.processes) process.incarnation = 1;
  // The first pass joins, the second one reads.
  for (int pass = 0; pass < 2 && options_.joined; ++pass) {
    for (uint8_t w = 0; w < kExploredWorkers; ++w) {
      for (uint8_t s = 0; s < kExploredShards; ++s) {
        start = After(start, {Action::Kind::kDeliver, w, s});
      }
    }
  }
  start.left = options_.faults;
  return start;
}

std::vector<ClusterTransitions::Action> ClusterTransitions::ActionsIn(
    const Cluster& cluster) const {
  using Kind = Action::Kind;
  std::vector<Action> actions;
  const bool crashed = cluster.left.crashes < options_.faults.crashes;
  const size_t records = RecordCount(cluster);
  if (records > 0) actions.push_back({Kind::kCommit, 0, 0});
  for (uint8_t n = 0; cluster.left.servers > 0 && n <= records; ++n) {
    actions.push_back({Kind::kEndServer, 0, n});
  }
  for (uint8_t s = 0; s < kExploredShards; ++s) {
    // The start timeout of a shard runs out only if the start takes longer because of a crash.
    if (crashed && !shards_.open(cluster.shards[s])) actions.push_back({Kind::kOpen, 0, s});
    if (options_.change.has_value() && cluster.changed[s] == 0) {
      actions.push_back({Kind::kChange, 0, s});
    }
    if (MaySum(cluster, s)) actions.push_back({Kind::kSum, 0, s});
  }
  for (uint8_t w = 0; w < kExploredWorkers; ++w) {
    const Process& process = cluster.processes[w];
    const bool down = process.phase == Phase::kDown;
    if (down) actions.push_back({Kind::kRestart, w, 0});
    if (!down && process.phase != Phase::kOver && cluster.left.crashes > 0) {
      actions.push_back({Kind::kCrash, w, 0});
    }
    if (process.phase == Phase::kReading && cluster.left.stops > 0) {
      actions.push_back({Kind::kStop, w, 0});
    }
    for (uint8_t s = 0; s < kExploredShards; ++s) {
      const bool has_message =
          MessageOf(process, w, s).kind != EventKind::kOpen && !WaitsForCommit(cluster, w, s);
      if (has_message) actions.push_back({Kind::kDeliver, w, s});
      if (has_message && cluster.left.losses > 0) actions.push_back({Kind::kLose, w, s});
      const bool has_room = s != 0 || records < cluster.records.size();
      if (process.shards[s].old.kind != 0 && cluster.left.repeats > 0 && has_room) {
        actions.push_back({Kind::kRepeat, w, s});
      }
      if ((process.joined >> s & 1) == 0) continue;
      if (down || cluster.left.expiries > 0) actions.push_back({Kind::kExpire, w, s});
      if (!down) actions.push_back({Kind::kReturn, w, s});
    }
  }
  return actions;
}

bool ClusterTransitions::MaySum(const Cluster& cluster, uint32_t shard) const {
  const Step round = shards_.frontier(cluster.shards[shard]);
  return std::ranges::all_of(cluster.shards,
                             [&](uint32_t state) { return shards_.next_frontier(state) > round; });
}

bool ClusterTransitions::IsProgress(const Cluster& cluster, const Action& action) {
  switch (action.kind) {
    case Action::Kind::kDeliver:
    case Action::Kind::kReturn:
    case Action::Kind::kOpen:
    case Action::Kind::kCommit:
    case Action::Kind::kSum:
      return true;
    case Action::Kind::kExpire:
      return cluster.processes[action.worker].phase == Phase::kDown;
    default:
      return false;
  }
}

ClusterTransitions::Cluster ClusterTransitions::After(Cluster cluster, const Action& action) {
  Process& process = cluster.processes[action.worker];
  const ExploredEvent lease = {.worker = action.worker, .incarnation = process.incarnation};
  const auto apply_now = [&](const ExploredEvent& event, bool lost) {
    if (HasLog(cluster, action.shard)) Commit(cluster);
    ApplyEvent(cluster, action.shard, event, lost);
  };
  switch (action.kind) {
    case Action::Kind::kLose:
      --cluster.left.losses;
      apply_now(MessageOf(process, action.worker, action.shard), true);
      break;
    case Action::Kind::kDeliver:
      Arrive(cluster, action.shard, MessageOf(process, action.worker, action.shard));
      break;
    case Action::Kind::kRepeat:
      --cluster.left.repeats;
      Arrive(cluster, action.shard, ToEvent(process.shards[action.shard].old));
      break;
    case Action::Kind::kExpire: {
      if (process.phase != Phase::kDown) --cluster.left.expiries;
      ExploredEvent event = lease;
      event.kind = EventKind::kExpire;
      apply_now(event, false);
      break;
    }
    case Action::Kind::kReturn: {
      ExploredEvent event = lease;
      event.kind = EventKind::kReturn;
      apply_now(event, false);
      break;
    }
    case Action::Kind::kOpen:
      apply_now({}, false);
      break;
    case Action::Kind::kCrash:
      --cluster.left.crashes;
      Crash(process, action.worker);
      break;
    case Action::Kind::kRestart:
      process.phase = Phase::kJoining;
      process.joined = 0;
      ++process.incarnation;
      break;
    case Action::Kind::kStop:
      --cluster.left.stops;
      process.phase = Phase::kLeaving;
      BeginToLeave(process);
      break;
    case Action::Kind::kCommit:
      Commit(cluster);
      break;
    case Action::Kind::kChange:
      cluster.changed[action.shard] = 1;
      apply_now(
          {.kind = EventKind::kRule, .step = static_cast<uint8_t>(options_.change->from.value)},
          false);
      break;
    case Action::Kind::kSum: {
      const Step round = shards_.frontier(cluster.shards[action.shard]);
      apply_now({.kind = EventKind::kSum, .step = static_cast<uint8_t>(round.value)}, false);
      break;
    }
    case Action::Kind::kEndServer:
      EndServer(cluster, action.shard);
      break;
  }
  return cluster;
}

ClusterTransitions::Message ClusterTransitions::ToMessage(const ExploredEvent& event) {
  return {.gradients = event.gradients,
          .kind = static_cast<uint8_t>(1 + static_cast<int>(event.kind)),
          .sender = static_cast<uint8_t>(event.incarnation * 4 + event.worker),
          .step = event.step,
          .late_examples = event.late_examples};
}

ExploredEvent ClusterTransitions::ToEvent(const Message& message) {
  return {.kind = static_cast<EventKind>(message.kind - 1),
          .worker = static_cast<uint8_t>(message.sender % 4),
          .incarnation = static_cast<uint8_t>(message.sender / 4),
          .step = message.step,
          .late_examples = message.late_examples,
          .gradients = message.gradients};
}

size_t ClusterTransitions::RecordCount(const Cluster& cluster) {
  return static_cast<size_t>(std::ranges::count_if(
      cluster.records, [](const Message& record) { return record.kind != 0; }));
}

bool ClusterTransitions::WaitsForCommit(const Cluster& cluster, uint8_t worker, uint32_t shard) {
  const auto is_of_worker = [worker](const Message& record) {
    return record.kind != 0 && record.sender % 4 == worker;
  };
  return shard == 0 && std::ranges::any_of(cluster.records, is_of_worker);
}

void ClusterTransitions::Arrive(Cluster& cluster, uint32_t shard, const ExploredEvent& event) {
  if (!HasLog(cluster, shard)) return ApplyEvent(cluster, shard, event, false);
  const size_t records = RecordCount(cluster);
  if (options_.sent_before_commit) {
    const uint32_t committed = cluster.shards[shard];
    Replay(cluster, records);
    ApplyEvent(cluster, shard, event, false);
    cluster.shards[shard] = committed;
  }
  cluster.records[records] = ToMessage(event);
}

void ClusterTransitions::Replay(Cluster& cluster, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    cluster.shards[0] = shards_.Apply(cluster.shards[0], ToEvent(cluster.records[i])).to;
  }
}

void ClusterTransitions::Commit(Cluster& cluster) {
  const size_t count = RecordCount(cluster);
  if (options_.sent_before_commit) {
    Replay(cluster, count);
  } else {
    for (size_t i = 0; i < count; ++i) {
      ApplyEvent(cluster, 0, ToEvent(cluster.records[i]), false);
    }
  }
  cluster.records = {};
}

void ClusterTransitions::EndServer(Cluster& cluster, size_t surviving_records) {
  Replay(cluster, surviving_records);
  cluster.records = {};
  if ((cluster.acknowledged & ~shards_.accepted(cluster.shards[0])) != 0) {
    violation_ = "an acknowledged push is lost";
  }
  cluster.acknowledged = 0;
  --cluster.left.servers;
  for (Process& process : cluster.processes) {
    // A server that was started again ignores messages to its predecessor.
    process.shards[0].old = {};
    if (process.phase == Phase::kReading || process.phase == Phase::kPushing) process.again = 1;
    if (process.phase != Phase::kJoining) continue;
    process.joined = 0;
    process.jump = process.join_next = process.join_open = 0;
  }
}

ExploredEvent ClusterTransitions::MessageOf(const Process& process, uint8_t worker,
                                            uint32_t shard) const {
  const PerShard& s = process.shards[shard];
  const bool joined = process.joined >> shard & 1;
  ExploredEvent event = {.worker = worker, .incarnation = process.incarnation};
  if (shard == 0 && process.again != 0) {
    event.kind = EventKind::kJoin;
    return event;
  }
  switch (process.phase) {
    case Phase::kJoining:
      // A process joins the shards in the order of their numbers.
      if (process.joined == (1u << shard) - 1) event.kind = EventKind::kJoin;
      break;
    case Phase::kReading:
      event.step = process.step;
      if (s.answered < process.step + 1) event.kind = EventKind::kRead;
      break;
    case Phase::kPushing:
      event.step = process.step;
      if (s.pushing != 0) {
        event.kind = EventKind::kPush;
        event.gradients = s.push;
        event.late_examples = s.push_late;
      } else if (s.answered < process.step + 2) {
        event.kind = EventKind::kRead;
        ++event.step;
      }
      break;
    case Phase::kLeaving:
      if (joined) event.kind = EventKind::kLeave;
      break;
    case Phase::kOver:
    case Phase::kDown:
      break;
  }
  return event;
}

void ClusterTransitions::ApplyEvent(Cluster& cluster, uint32_t shard, const ExploredEvent& event,
                                    bool lost) {
  const ShardStates::Transition& transition = shards_.Apply(cluster.shards[shard], event);
  cluster.shards[shard] = transition.to;
  Process& sender = cluster.processes[event.worker];
  const bool current = event.incarnation == sender.incarnation;
  // The exploration never loses the reply to a Join or a Leave, because a client repeats these
  // calls.
  if (event.kind == EventKind::kJoin && current) {
    sender.joined |= 1u << shard;
    if (shard == 0) sender.again = 0;
    if (sender.phase == Phase::kJoining) ReceiveJoin(sender, transition.effects.join.value());
  }
  if (event.kind == EventKind::kLeave && current) sender.joined &= ~(1u << shard);
  if (!lost) {
    if (transition.effects.judgement.has_value()) {
      ReceiveVerdict(cluster, sender, shard, *transition.effects.judgement);
    }
    for (const ReadAnswer& answer : transition.effects.answers) {
      Process& reader = cluster.processes[answer.worker.value];
      const bool running = reader.phase == Phase::kReading || reader.phase == Phase::kPushing;
      const uint64_t awaited = reader.step + (reader.phase == Phase::kPushing ? 1u : 0u);
      const bool has_stream = shard != 0 || reader.again == 0;
      if (running && has_stream && answer.incarnation.value == reader.incarnation &&
          answer.step.value == awaited) {
        reader.shards[shard].answered = static_cast<uint8_t>(awaited + 1);
      }
    }
  }
  for (uint8_t w = 0; w < kExploredWorkers; ++w) Continue(cluster.processes[w], w);
}

void ClusterTransitions::ReceiveVerdict(Cluster& cluster, Process& process, uint32_t shard,
                                        const Judgement& judgement) {
  const bool running = process.phase == Phase::kReading || process.phase == Phase::kPushing;
  if (judgement.incarnation.value != process.incarnation || !running) return;
  PerShard& s = process.shards[shard];
  if (judgement.verdict == Verdict::kFenced) violation_ = "the newest process was fenced";
  if (s.pushing == 0 || judgement.step.value != process.step) return;
  const uint32_t accepted = shards_.accepted(cluster.shards[shard]);
  s.pushing = 0;
  process.jump = std::max(process.jump, static_cast<uint8_t>(judgement.frontier.value));
  if (judgement.verdict == Verdict::kLate) {
    if ((accepted & s.push) != 0) violation_ = "a late push is in the shard";
    process.late = 1;
    s.residual |= s.push;
    ++s.late_examples;
  } else if (judgement.verdict == Verdict::kAccept) {
    if ((accepted & s.push) != s.push) violation_ = "an accepted push is not in the shard";
    if (HasLog(cluster, shard)) cluster.acknowledged |= s.push;
    s.late_examples = 0;
  } else {
    violation_ = "a push was neither accepted nor late";
  }
  if (options_.faults.repeats > 0) {
    s.old = ToMessage({.kind = EventKind::kPush,
                       .worker = static_cast<uint8_t>(judgement.worker.value),
                       .incarnation = process.incarnation,
                       .step = process.step,
                       .late_examples = s.push_late,
                       .gradients = s.push});
  }
  s.push = 0;
  s.push_late = 0;
}

void ClusterTransitions::ReceiveJoin(Process& process, const JoinAnswer& answer) {
  // The step ahead of an open round is added at the end, if any shard has an open round.
  process.join_next =
      std::max(process.join_next, static_cast<uint8_t>(answer.predecessor_next.value));
  process.jump = std::max(process.jump, static_cast<uint8_t>(answer.frontier.value));
  process.join_open |= answer.open && answer.by_round ? 1 : 0;
}

void ClusterTransitions::Continue(Process& process, uint8_t worker) const {
  const auto begin = [&](uint8_t step) {
    process.step = step;
    process.late = process.jump = process.join_next = process.join_open = 0;
    process.phase = step >= options_.step_count ? Phase::kLeaving : Phase::kReading;
    if (process.phase == Phase::kLeaving) BeginToLeave(process);
  };
  if (process.phase == Phase::kJoining && process.joined == (1u << kExploredShards) - 1) {
    begin(std::max<uint8_t>(process.join_next, process.jump + process.join_open));
  }
  if (process.phase == Phase::kPushing &&
      std::none_of(process.shards.begin(), process.shards.end(),
                   [](const PerShard& s) { return s.pushing != 0; })) {
    const uint8_t following = process.step + 1;
    begin(process.late != 0 ? std::max(following, process.jump) : following);
  }
  if (process.phase == Phase::kReading &&
      std::all_of(process.shards.begin(), process.shards.end(),
                  [&](const PerShard& s) { return s.answered >= process.step + 1; })) {
    process.phase = Phase::kPushing;
    const uint32_t process_number = (process.incarnation - 1) * kExploredWorkers + worker;
    const uint32_t gradient = 1u << (process_number * options_.step_count + process.step);
    for (PerShard& s : process.shards) {
      s.push = s.residual | gradient;
      s.push_late = s.late_examples;
      s.residual = 0;
      s.pushing = 1;
    }
  }
  if (process.phase == Phase::kLeaving && process.joined == 0) process.phase = Phase::kOver;
}

void ClusterTransitions::BeginToLeave(Process& process) {
  process.step = 0;
  for (PerShard& s : process.shards) {
    const Message old = s.old;
    s = {};
    s.old = old;
  }
}

void ClusterTransitions::Crash(Process& process, uint8_t worker) const {
  Process dead = {};
  dead.phase = Phase::kDown;
  dead.incarnation = process.incarnation;
  dead.joined = process.joined;
  for (uint32_t s = 0; s < kExploredShards && options_.faults.repeats > 0; ++s) {
    // The last message of the process may still be on its way.
    const ExploredEvent last = MessageOf(process, worker, s);
    dead.shards[s].old = process.shards[s].old;
    if (last.kind != EventKind::kPush && last.kind != EventKind::kRead) continue;
    dead.shards[s].old = ToMessage(last);
  }
  process = dead;
}

bool ClusterTransitions::IsFinal(const Cluster& cluster) {
  return std::all_of(cluster.processes.begin(), cluster.processes.end(),
                     [](const Process& process) {
                       return process.phase == Phase::kOver || process.phase == Phase::kDown;
                     });
}

bool ClusterTransitions::EndsAtOneStep(const Cluster& cluster) const {
  const auto is_complete = [&](uint32_t shard) {
    return shards_.frontier(shard) == shards_.frontier(cluster.shards[0]) &&
           shards_.pending(shard) == 0;
  };
  return std::ranges::all_of(cluster.shards, is_complete);
}

std::string ClusterTransitions::Describe(const Cluster& cluster, const Action& action) const {
  constexpr const char* kNames[] = {"deliver", "deliver and lose the reply of",
                                    "repeat",  "expire",
                                    "return",  "time out the start",
                                    "crash",   "restart",
                                    "stop"};
  using Kind = Action::Kind;
  switch (action.kind) {
    case Kind::kCommit:
      return "commit the records of shard 0";
    case Kind::kChange:
      return absl::StrCat("change the rule of shard ", action.shard);
    case Kind::kSum:
      return absl::StrCat("sum the round of shard ", action.shard);
    case Kind::kEndServer:
      return absl::StrCat("end the server of shard 0; ", action.shard, " of ", RecordCount(cluster),
                          " records survive");
    default:
      break;
  }
  const Process& process = cluster.processes[action.worker];
  std::string text = absl::StrCat(kNames[static_cast<int>(action.kind)], " w", action.worker,
                                  " at shard ", action.shard);
  if (action.kind == Kind::kDeliver || action.kind == Kind::kLose) {
    absl::StrAppend(&text, ": ", MessageOf(process, action.worker, action.shard).ToString());
  } else if (action.kind == Kind::kRepeat) {
    absl::StrAppend(&text, ": ", ToEvent(process.shards[action.shard].old).ToString());
  }
  return text;
}

}  // namespace thinwire

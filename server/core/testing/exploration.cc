#include "server/core/testing/exploration.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <type_traits>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using EventKind = ExploredEvent::Kind;

constexpr uint8_t kOldPush = 1;
constexpr uint8_t kOldRead = 2;

}  // namespace

bool Exploration::Cluster::operator==(const Cluster& other) const {
  static_assert(std::has_unique_object_representations_v<Cluster>);
  return std::memcmp(this, &other, sizeof(Cluster)) == 0;
}

size_t Exploration::ClusterHash::operator()(const Cluster& cluster) const {
  return std::hash<std::string_view>()(
      std::string_view(reinterpret_cast<const char*>(&cluster), sizeof(Cluster)));
}

Exploration::Exploration(const ExplorationOptions& options)
    : options_(options), shards_(options.rule) {}

std::string Exploration::Run() {
  Visit(Start(), 0, {});
  for (uint32_t from = 0; from < states_.size(); ++from) {
    for (const Action& action : ActionsIn(states_[from])) {
      const Cluster after = After(states_[from], action);
      const uint32_t to = Visit(after, from, action);
      if (!shards_.violations().empty()) return shards_.violations()[0];
      if (!violation_.empty()) return absl::StrCat(violation_, " after", DescribePath(to));
      if (to == from) continue;
      ++edge_count_;
      if (IsProgress(states_[from], action)) progress_.emplace_back(to, from);
    }
    if (IsFinal(states_[from])) ++final_count_;
  }
  const uint32_t stuck = FindStuck();
  if (stuck < states_.size()) return absl::StrCat("stuck after", DescribePath(stuck));
  return "";
}

Exploration::Cluster Exploration::Start() {
  Cluster start = {};
  for (Process& process : start.processes) process.incarnation = 1;
  start.left = options_.faults;
  // The first pass joins, the second one reads.
  for (int pass = 0; pass < 2 && options_.joined; ++pass) {
    for (uint8_t w = 0; w < kExploredWorkers; ++w) {
      for (uint8_t s = 0; s < kExploredShards; ++s) {
        start = After(start, {Action::Kind::kDeliver, w, s});
      }
    }
  }
  return start;
}

uint32_t Exploration::Visit(const Cluster& cluster, uint32_t from, const Action& action) {
  const auto [place, is_new] = numbers_.try_emplace(cluster, static_cast<uint32_t>(states_.size()));
  if (is_new) {
    states_.push_back(cluster);
    reached_by_.emplace_back(from, action);
  }
  return place->second;
}

std::vector<Exploration::Action> Exploration::ActionsIn(const Cluster& cluster) const {
  using Kind = Action::Kind;
  std::vector<Action> actions;
  const bool crashed = cluster.left.crashes < options_.faults.crashes;
  for (uint8_t s = 0; s < kExploredShards; ++s) {
    // The start timeout of a shard runs out only if the start takes longer because of a crash.
    if (crashed && !shards_.open(cluster.shards[s])) actions.push_back({Kind::kOpen, 0, s});
  }
  for (uint8_t w = 0; w < kExploredWorkers; ++w) {
    const Process& process = cluster.processes[w];
    const bool down = process.phase == Phase::kDown;
    if (down) actions.push_back({Kind::kRestart, w, 0});
    if (!down && process.phase != Phase::kOver && cluster.left.crashes > 0) {
      actions.push_back({Kind::kCrash, w, 0});
    }
    for (uint8_t s = 0; s < kExploredShards; ++s) {
      const bool has_message = MessageOf(process, w, s).kind != EventKind::kOpen;
      if (has_message) actions.push_back({Kind::kDeliver, w, s});
      if (has_message && cluster.left.losses > 0) actions.push_back({Kind::kLose, w, s});
      if (process.shards[s].old.kind != 0 && cluster.left.repeats > 0) {
        actions.push_back({Kind::kRepeat, w, s});
      }
      if ((process.joined >> s & 1) == 0) continue;
      if (down || cluster.left.expiries > 0) actions.push_back({Kind::kExpire, w, s});
      if (!down) actions.push_back({Kind::kReturn, w, s});
    }
  }
  return actions;
}

bool Exploration::IsProgress(const Cluster& cluster, const Action& action) {
  switch (action.kind) {
    case Action::Kind::kDeliver:
    case Action::Kind::kReturn:
    case Action::Kind::kOpen:
      return true;
    case Action::Kind::kExpire:
      return cluster.processes[action.worker].phase == Phase::kDown;
    default:
      return false;
  }
}

Exploration::Cluster Exploration::After(Cluster cluster, const Action& action) {
  Process& process = cluster.processes[action.worker];
  const ExploredEvent lease = {.worker = action.worker, .incarnation = process.incarnation};
  switch (action.kind) {
    case Action::Kind::kLose:
      --cluster.left.losses;
      [[fallthrough]];
    case Action::Kind::kDeliver:
      ApplyEvent(cluster, action.shard, MessageOf(process, action.worker, action.shard),
                 action.kind == Action::Kind::kLose);
      break;
    case Action::Kind::kRepeat:
      --cluster.left.repeats;
      ApplyEvent(cluster, action.shard, OldMessageOf(process, action.worker, action.shard), false);
      break;
    case Action::Kind::kExpire: {
      if (process.phase != Phase::kDown) --cluster.left.expiries;
      ExploredEvent event = lease;
      event.kind = EventKind::kExpire;
      ApplyEvent(cluster, action.shard, event, false);
      break;
    }
    case Action::Kind::kReturn: {
      ExploredEvent event = lease;
      event.kind = EventKind::kReturn;
      ApplyEvent(cluster, action.shard, event, false);
      break;
    }
    case Action::Kind::kOpen:
      ApplyEvent(cluster, action.shard, {}, false);
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
  }
  return cluster;
}

ExploredEvent Exploration::MessageOf(const Process& process, uint8_t worker, uint32_t shard) const {
  const PerShard& s = process.shards[shard];
  const bool joined = process.joined >> shard & 1;
  ExploredEvent event = {.worker = worker, .incarnation = process.incarnation};
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

ExploredEvent Exploration::OldMessageOf(const Process& process, uint8_t worker,
                                        uint32_t shard) const {
  const OldMessage& old = process.shards[shard].old;
  return {.kind = old.kind == kOldPush ? EventKind::kPush : EventKind::kRead,
          .worker = worker,
          .incarnation = old.incarnation,
          .step = old.step,
          .late_examples = old.late_examples,
          .gradients = old.gradients};
}

void Exploration::ApplyEvent(Cluster& cluster, uint32_t shard, const ExploredEvent& event,
                             bool lost) {
  const ShardStates::Transition& transition = shards_.Apply(cluster.shards[shard], event);
  cluster.shards[shard] = transition.to;
  Process& sender = cluster.processes[event.worker];
  // The simulation never loses the reply to a Join or a Leave, because a client repeats these calls.
  if (event.kind == EventKind::kJoin) {
    sender.joined |= 1u << shard;
    ReceiveJoin(sender, transition.effects.join.value());
  }
  if (event.kind == EventKind::kLeave) sender.joined &= ~(1u << shard);
  if (!lost) {
    if (transition.effects.judgement.has_value()) {
      ReceiveVerdict(cluster, sender, shard, *transition.effects.judgement);
    }
    for (const ReadAnswer& answer : transition.effects.answers) {
      Process& reader = cluster.processes[answer.worker.value];
      const bool running = reader.phase == Phase::kReading || reader.phase == Phase::kPushing;
      const uint64_t awaited = reader.step + (reader.phase == Phase::kPushing ? 1u : 0u);
      if (running && answer.incarnation.value == reader.incarnation &&
          answer.step.value == awaited) {
        reader.shards[shard].answered = static_cast<uint8_t>(awaited + 1);
      }
    }
  }
  for (uint8_t w = 0; w < kExploredWorkers; ++w) Continue(cluster.processes[w], w);
}

void Exploration::ReceiveVerdict(const Cluster& cluster, Process& process, uint32_t shard,
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
    s.late_examples = 0;
  } else {
    violation_ = "a push was neither accepted nor late";
  }
  if (options_.faults.repeats > 0) {
    s.old = {s.push, kOldPush, process.incarnation, process.step, s.push_late};
  }
  s.push = 0;
  s.push_late = 0;
}

void Exploration::ReceiveJoin(Process& process, const JoinAnswer& answer) {
  // The step ahead of an open round is added at the end, if any shard is open.
  process.join_next =
      std::max(process.join_next, static_cast<uint8_t>(answer.predecessor_next.value));
  process.jump = std::max(process.jump, static_cast<uint8_t>(answer.frontier.value));
  process.join_open |= answer.open ? 1 : 0;
}

void Exploration::Continue(Process& process, uint8_t worker) const {
  const auto begin = [&](uint8_t step) {
    process.step = step;
    process.late = process.jump = process.join_next = process.join_open = 0;
    process.phase = step >= options_.step_count ? Phase::kLeaving : Phase::kReading;
    if (process.phase == Phase::kReading) return;
    // Nothing of a leaving process is needed any more, except messages that may arrive again.
    process.step = 0;
    for (PerShard& s : process.shards) {
      const OldMessage old = s.old;
      s = {};
      s.old = old;
    }
  };
  if (process.phase == Phase::kJoining && process.joined == (1u << kExploredShards) - 1) {
    const bool ahead = process.join_open != 0 && options_.rule.fold == Fold::kRound;
    begin(std::max<uint8_t>(process.join_next, process.jump + (ahead ? 1 : 0)));
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

void Exploration::Crash(Process& process, uint8_t worker) const {
  Process dead = {};
  dead.phase = Phase::kDown;
  dead.incarnation = process.incarnation;
  dead.joined = process.joined;
  for (uint32_t s = 0; s < kExploredShards && options_.faults.repeats > 0; ++s) {
    // The last message of the process may still be on its way.
    const ExploredEvent last = MessageOf(process, worker, s);
    dead.shards[s].old = process.shards[s].old;
    if (last.kind != EventKind::kPush && last.kind != EventKind::kRead) continue;
    dead.shards[s].old = {last.gradients, last.kind == EventKind::kPush ? kOldPush : kOldRead,
                          last.incarnation, last.step, last.late_examples};
  }
  process = dead;
}

bool Exploration::IsFinal(const Cluster& cluster) {
  return std::all_of(cluster.processes.begin(), cluster.processes.end(),
                     [](const Process& process) {
                       return process.phase == Phase::kOver || process.phase == Phase::kDown;
                     });
}

uint32_t Exploration::FindStuck() const {
  std::vector<std::pair<uint32_t, uint32_t>> edges = progress_;
  std::sort(edges.begin(), edges.end());
  std::vector<bool> finishes(states_.size());
  std::vector<uint32_t> waiting;
  for (uint32_t i = 0; i < states_.size(); ++i) {
    if (!IsFinal(states_[i])) continue;
    finishes[i] = true;
    waiting.push_back(i);
  }
  while (!waiting.empty()) {
    const uint32_t to = waiting.back();
    waiting.pop_back();
    for (auto edge = std::lower_bound(edges.begin(), edges.end(), std::pair(to, 0u));
         edge != edges.end() && edge->first == to; ++edge) {
      if (finishes[edge->second]) continue;
      finishes[edge->second] = true;
      waiting.push_back(edge->second);
    }
  }
  return static_cast<uint32_t>(std::find(finishes.begin(), finishes.end(), false) -
                               finishes.begin());
}

std::string Exploration::DescribePath(uint32_t state) const {
  constexpr const char* kNames[] = {"deliver", "deliver and lose the reply of",
                                    "repeat",  "expire",
                                    "return",  "time out the start",
                                    "crash",   "restart"};
  std::vector<std::string> lines;
  for (; state != 0; state = reached_by_[state].first) {
    const auto& [from, action] = reached_by_[state];
    const Process& process = states_[from].processes[action.worker];
    std::string text = absl::StrCat(kNames[static_cast<int>(action.kind)], " w", action.worker,
                                    " at shard ", action.shard);
    if (action.kind == Action::Kind::kDeliver || action.kind == Action::Kind::kLose) {
      absl::StrAppend(&text, ": ", MessageOf(process, action.worker, action.shard).ToString());
    } else if (action.kind == Action::Kind::kRepeat) {
      absl::StrAppend(&text, ": ", OldMessageOf(process, action.worker, action.shard).ToString());
    }
    lines.push_back(text);
  }
  std::string path;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    absl::StrAppend(&path, "\n  ", *line);
  }
  return path;
}

}  // namespace thinwire

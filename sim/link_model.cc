#include "sim/link_model.h"

#include <algorithm>
#include <compare>
#include <deque>
#include <limits>
#include <map>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_map.h"

namespace thinwire::sim {
namespace {

constexpr double kNoLimit = std::numeric_limits<double>::infinity();
constexpr size_t kNone = std::numeric_limits<size_t>::max();

struct Group;

// The messages of one sender to one receiver. The first message is being sent.
struct Flow {
  struct Message {
    uint64_t number;
    double bits;
    Executor::Task delivered;
  };

  size_t out;  // directions
  size_t in;
  absl::Duration latency;
  std::deque<Message> messages;
  Group* group = nullptr;  // null if there are no messages
  double end = 0;          // the group's clock at the end of the first message
};

// The flows of a group have the same rate at all times: they share the same directions, and their
// unshared directions have the same limit.
struct GroupKey {
  size_t out = kNone;  // shared directions
  size_t in = kNone;
  double limit = kNoLimit;  // bits per second

  auto operator<=>(const GroupKey&) const = default;
};

// The clock of a group counts the bits that each of its flows has sent. A change of the rate thus
// changes no flow.
struct Group {
  GroupKey key;
  double rate = 0;       // bits per second
  double new_rate = -1;  // during Fill; below 0: not known yet
  double clock = 0;      // at time `since`
  absl::Duration since;
  absl::Duration next = absl::InfiniteDuration();      // the end of the first message, if rate > 0
  std::map<std::pair<double, uint64_t>, Flow*> flows;  // by end and number of the message

  double ClockAt(absl::Duration now) const {
    return clock + rate * absl::ToDoubleSeconds(now - since);
  }
  // REQUIRES: there are flows.
  void SetNext() {
    if (rate == 0) return;
    const double seconds = (flows.begin()->first.first - clock) / rate;
    next = absl::Floor(since + absl::Seconds(std::max(seconds, 0.0)) + absl::Nanoseconds(0.5),
                       absl::Nanoseconds(1));
  }
};

// One direction of a link.
struct Direction {
  double bits_per_second = kNoLimit;
  absl::flat_hash_set<Flow*> flows;  // if the bandwidth is limited
  // During Fill: the groups that share the direction, their bandwidth that is not assigned yet, and
  // their flows without a rate.
  std::vector<Group*> groups;
  double left = 0;
  size_t open = 0;
};

}  // namespace

struct LinkModel::State {
  State(std::vector<LinkSpec> links, VirtualTime& queue, Sites s);

  void Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered);

  // Adds FLOW to its directions and its group, or removes it. A flow that becomes or remains the
  // only one of a direction changes its group.
  void Start(Flow& flow);
  void Stop(Flow& flow);
  // Adds a flow whose first message has BITS left to its group.
  void Join(Flow& flow, double bits);
  // Removes FLOW from its group and returns the bits that are left of its first message.
  double Leave(Flow& flow);
  bool IsShared(size_t direction) const { return directions[direction].flows.size() > 1; }

  // Ends all messages whose time has come, sets the rates if flows have started or stopped, and
  // calls itself at the next end of a message.
  void Step();
  void EndMessages();
  // Sets the rates of all groups by progressive filling.
  void Fill();
  // Sets the rate of GROUP during Fill.
  void Assign(Group& group, double rate);
  void StepAt(absl::Duration when);

  const std::vector<LinkSpec> links;
  const Sites sites;
  VirtualTime& queue;
  std::vector<Direction> directions;  // out and in of machine 0, of machine 1, ...
  absl::node_hash_map<std::pair<size_t, size_t>, Flow> flows;  // by sender and receiver
  std::map<GroupKey, Group> groups;
  std::vector<uint64_t> sent_bytes;
  uint64_t message_count = 0;
  bool changed = false;  // flows have started or stopped since the last Fill
  absl::Duration step_at = absl::InfiniteDuration();
  uint64_t step_number = 0;  // of the scheduled step; earlier ones are void
};

LinkModel::State::State(std::vector<LinkSpec> l, VirtualTime& q, Sites s)
    : links(std::move(l)),
      sites(std::move(s)),
      queue(q),
      directions(2 * links.size()),
      sent_bytes(links.size()) {
  for (size_t i = 0; i < directions.size(); ++i) {
    const double rate = links[i / 2].bits_per_second;
    if (rate > 0) directions[i].bits_per_second = rate;
  }
}

void LinkModel::State::Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered) {
  if (from == to) return queue.After(absl::ZeroDuration(), std::move(delivered));
  sent_bytes[from] += bytes;
  const auto [place, added] = flows.try_emplace({from, to});
  Flow& flow = place->second;
  if (added) {
    flow.out = 2 * from;
    flow.in = 2 * to + 1;
    flow.latency = links[from].latency + links[to].latency + sites.Between(from, to);
  }
  if (directions[flow.out].bits_per_second == kNoLimit &&
      directions[flow.in].bits_per_second == kNoLimit) {
    return queue.After(flow.latency, std::move(delivered));
  }
  flow.messages.push_back(
      {message_count++, 8.0 * static_cast<double>(bytes), std::move(delivered)});
  if (flow.messages.size() == 1) {
    Start(flow);
    StepAt(queue.elapsed());
  }
}

void LinkModel::State::Start(Flow& flow) {
  changed = true;
  for (const size_t i : {flow.out, flow.in}) {
    Direction& direction = directions[i];
    if (direction.bits_per_second == kNoLimit) continue;
    Flow* const only = direction.flows.size() == 1 ? *direction.flows.begin() : nullptr;
    direction.flows.insert(&flow);
    if (only != nullptr) Join(*only, Leave(*only));
  }
  Join(flow, flow.messages.front().bits);
}

void LinkModel::State::Stop(Flow& flow) {
  changed = true;
  Leave(flow);
  for (const size_t i : {flow.out, flow.in}) {
    Direction& direction = directions[i];
    direction.flows.erase(&flow);
    if (direction.flows.size() != 1) continue;
    Flow& only = **direction.flows.begin();
    Join(only, Leave(only));
  }
}

void LinkModel::State::Join(Flow& flow, double bits) {
  GroupKey key;
  if (IsShared(flow.out)) {
    key.out = flow.out;
  } else {
    key.limit = directions[flow.out].bits_per_second;
  }
  if (IsShared(flow.in)) {
    key.in = flow.in;
  } else {
    key.limit = std::min(key.limit, directions[flow.in].bits_per_second);
  }
  const auto [place, added] = groups.try_emplace(key);
  flow.group = &place->second;
  if (added) {
    flow.group->key = key;
    flow.group->since = queue.elapsed();
  }
  flow.end = flow.group->ClockAt(queue.elapsed()) + bits;
  flow.group->flows[{flow.end, flow.messages.front().number}] = &flow;
  flow.group->SetNext();
}

double LinkModel::State::Leave(Flow& flow) {
  Group& group = *flow.group;
  flow.group = nullptr;
  const double bits = std::max(flow.end - group.ClockAt(queue.elapsed()), 0.0);
  group.flows.erase({flow.end, flow.messages.front().number});
  if (group.flows.empty()) {
    groups.erase(GroupKey(group.key));
  } else {
    group.SetNext();
  }
  return bits;
}

void LinkModel::State::StepAt(absl::Duration when) {
  if (when == step_at) return;
  step_at = when;
  queue.At(when, [this, number = ++step_number] {
    if (number == step_number) Step();
  });
}

void LinkModel::State::Step() {
  step_at = absl::InfiniteDuration();
  EndMessages();
  if (changed) Fill();
  absl::Duration next = absl::InfiniteDuration();
  for (const auto& [key, group] : groups) next = std::min(next, group.next);
  if (!groups.empty()) StepAt(next);
}

void LinkModel::State::EndMessages() {
  const absl::Duration now = queue.elapsed();
  std::map<uint64_t, Flow*> ended;  // by the number of the message
  for (auto& [key, group] : groups) {
    if (group.next > now) continue;
    // A time that was rounded down is a little before the end.
    group.clock = std::max(group.ClockAt(now), group.flows.begin()->first.first);
    group.since = now;
    for (const auto& [end, flow] : group.flows) {
      if (end.first > group.clock) break;
      ended[end.second] = flow;
    }
  }
  for (const auto& [number, flow] : ended) {
    queue.After(flow->latency, std::move(flow->messages.front().delivered));
    if (flow->messages.size() == 1) {
      Stop(*flow);
      flow->messages.pop_front();
      continue;
    }
    Group& group = *flow->group;
    group.flows.erase({flow->end, number});
    flow->messages.pop_front();
    flow->end = group.ClockAt(now) + flow->messages.front().bits;
    group.flows[{flow->end, flow->messages.front().number}] = flow;
    group.SetNext();
  }
}

void LinkModel::State::Fill() {
  changed = false;
  std::vector<Group*> limited;
  std::vector<Direction*> shared;
  for (auto& [key, group] : groups) {
    group.new_rate = -1;
    if (key.limit != kNoLimit) limited.push_back(&group);
    for (const size_t i : {key.out, key.in}) {
      if (i == kNone) continue;
      Direction& direction = directions[i];
      if (direction.groups.empty()) {
        direction.left = direction.bits_per_second;
        direction.open = 0;
        shared.push_back(&direction);
      }
      direction.groups.push_back(&group);
      direction.open += group.flows.size();
    }
  }
  std::stable_sort(limited.begin(), limited.end(),
                   [](const Group* a, const Group* b) { return a->key.limit < b->key.limit; });
  auto lowest_limit = limited.begin();
  while (true) {
    Direction* narrowest = nullptr;
    double share = kNoLimit;  // of a flow in the narrowest direction
    for (Direction* const direction : shared) {
      if (direction->open == 0) continue;
      const double its_share = direction->left / static_cast<double>(direction->open);
      if (its_share < share) {
        narrowest = direction;
        share = its_share;
      }
    }
    while (lowest_limit != limited.end() && (*lowest_limit)->new_rate >= 0) ++lowest_limit;
    if (lowest_limit != limited.end() && (*lowest_limit)->key.limit <= share) {
      Assign(**lowest_limit, (*lowest_limit)->key.limit);
      continue;
    }
    if (narrowest == nullptr) break;
    for (Group* const group : narrowest->groups) {
      if (group->new_rate < 0) Assign(*group, share);
    }
  }
  for (Direction* const direction : shared) direction->groups.clear();
}

void LinkModel::State::Assign(Group& group, double rate) {
  group.new_rate = rate;
  for (const size_t i : {group.key.out, group.key.in}) {
    if (i == kNone) continue;
    directions[i].left -= rate * static_cast<double>(group.flows.size());
    directions[i].open -= group.flows.size();
  }
  if (group.rate != rate) {
    group.clock = group.ClockAt(queue.elapsed());
    group.since = queue.elapsed();
    group.rate = rate;
  }
  group.SetNext();
}

LinkModel::LinkModel(std::vector<LinkSpec> links, VirtualTime& queue, Sites sites)
    : state_(std::make_unique<State>(std::move(links), queue, std::move(sites))) {}

LinkModel::~LinkModel() = default;

void LinkModel::Send(size_t from, size_t to, uint64_t bytes, Executor::Task delivered) {
  state_->Send(from, to, bytes, std::move(delivered));
}

uint64_t LinkModel::sent_bytes(size_t machine) const { return state_->sent_bytes[machine]; }

}  // namespace thinwire::sim

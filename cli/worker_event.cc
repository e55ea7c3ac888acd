#include "cli/worker_event.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using nlohmann::json;
using Kind = WorkerEvent::Kind;

// Reads the members of one object and remembers the first that has the wrong type.
class Members {
 public:
  explicit Members(const json& object) : object_(object) {}

  void Read(const char* name, uint64_t& to) {
    const json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_number_unsigned()) return Fail(name, "a whole number");
    to = member->get<uint64_t>();
  }
  // JSON knows no NaN: null stands for it.
  void Read(const char* name, double& to) {
    const json* member = Find(name);
    if (member == nullptr) return;
    if (member->is_null()) {
      to = std::numeric_limits<double>::quiet_NaN();
    } else if (member->is_number()) {
      to = member->get<double>();
    } else {
      Fail(name, "a number");
    }
  }
  // Null: there is none.
  void Read(const char* name, std::optional<double>& to) {
    const json* member = Find(name);
    if (member == nullptr || member->is_null()) return;
    double value = 0;
    Read(name, value);
    to = value;
  }
  void Read(const char* name, bool& to) {
    const json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_boolean()) return Fail(name, "true or false");
    to = member->get<bool>();
  }
  void Read(const char* name, std::string& to) {
    const json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_string()) return Fail(name, "a text");
    to = member->get<std::string>();
  }

  void Read(const char* name, std::vector<ChosenCodec>& to) {
    const json* member = Find(name);
    if (member == nullptr) return;
    if (!member->is_array()) return Fail(name, "a list");
    for (const json& object : *member) {
      if (!object.is_object()) return Fail(name, "a list of objects");
      Members members(object);
      ChosenCodec chosen;
      members.Read("group", chosen.group);
      members.Read("codec", chosen.codec);
      members.Read("reason", chosen.reason);
      if (status_.ok()) status_ = members.status();
      to.push_back(std::move(chosen));
    }
  }

  const absl::Status& status() const { return status_; }

 private:
  const json* Find(const char* name) const {
    const auto member = object_.find(name);
    return member == object_.end() ? nullptr : &*member;
  }
  void Fail(const char* name, const char* wanted) {
    if (status_.ok()) {
      status_ = absl::InvalidArgumentError(
          absl::StrCat(name, ": want ", wanted, ", got ", object_.at(name).dump()));
    }
  }

  const json& object_;
  absl::Status status_;
};

std::optional<Kind> KindOf(const std::string& name) {
  if (name == "joined") return Kind::kJoined;
  if (name == "step") return Kind::kStep;
  if (name == "epoch") return Kind::kEpoch;
  if (name == "waiting") return Kind::kWaiting;
  if (name == "done") return Kind::kDone;
  if (name == "error") return Kind::kError;
  return std::nullopt;
}

void ReadCounts(Members& members, WorkerCounts& counts) {
  members.Read("push_bytes_raw", counts.push_bytes_raw);
  members.Read("push_bytes_encoded", counts.push_bytes_encoded);
  members.Read("pull_bytes_raw", counts.pull_bytes_raw);
  members.Read("pull_bytes_encoded", counts.pull_bytes_encoded);
  members.Read("sent_bytes", counts.sent_bytes);
  members.Read("received_bytes", counts.received_bytes);
  members.Read("accepted_pushes", counts.accepted_pushes);
  members.Read("late_pushes", counts.late_pushes);
  members.Read("repeated_pushes", counts.repeated_pushes);
  members.Read("refused_pushes", counts.refused_pushes);
  members.Read("nonfinite_gradients", counts.nonfinite_gradients);
  members.Read("jumped_steps", counts.jumped_steps);
  members.Read("lost_put_backs", counts.lost_put_backs);
  members.Read("differing_replicas", counts.differing_replicas);
  members.Read("reconnects", counts.reconnects);
  members.Read("overflowed_steps", counts.overflowed_steps);
}

}  // namespace

WorkerCounts& WorkerCounts::operator+=(const WorkerCounts& other) {
  push_bytes_raw += other.push_bytes_raw;
  push_bytes_encoded += other.push_bytes_encoded;
  pull_bytes_raw += other.pull_bytes_raw;
  pull_bytes_encoded += other.pull_bytes_encoded;
  sent_bytes += other.sent_bytes;
  received_bytes += other.received_bytes;
  accepted_pushes += other.accepted_pushes;
  late_pushes += other.late_pushes;
  repeated_pushes += other.repeated_pushes;
  refused_pushes += other.refused_pushes;
  nonfinite_gradients += other.nonfinite_gradients;
  jumped_steps += other.jumped_steps;
  lost_put_backs += other.lost_put_backs;
  differing_replicas += other.differing_replicas;
  reconnects += other.reconnects;
  overflowed_steps += other.overflowed_steps;
  return *this;
}

absl::StatusOr<WorkerEvent> ParseWorkerEvent(const std::string& line) {
  const json object = json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return absl::InvalidArgumentError("want a JSON object");
  Members members(object);
  std::string name;
  uint64_t worker = std::numeric_limits<uint64_t>::max();
  members.Read("event", name);
  members.Read("worker", worker);
  const auto kind = KindOf(name);
  if (!kind)
    return absl::InvalidArgumentError(absl::StrCat("event: want a known one, got \"", name, "\""));
  if (worker > std::numeric_limits<uint32_t>::max())
    return absl::InvalidArgumentError("worker: want its number");

  WorkerEvent event;
  event.kind = *kind;
  event.worker = WorkerId{static_cast<uint32_t>(worker)};
  const bool done = *kind == Kind::kDone;
  members.Read(done ? "steps" : "step", event.step);
  members.Read("device", event.device);
  members.Read("epoch", event.epoch);
  members.Read("examples", event.examples);
  members.Read("seconds", event.seconds);
  members.Read("median_step_seconds", event.median_step_seconds);
  members.Read(*kind == Kind::kStep ? "loss"
               : done               ? "final_train_loss"
                                    : "train_loss",
               event.train_loss);
  members.Read(done ? "final_test_accuracy" : "test_accuracy", event.test_accuracy);
  members.Read("test_loss", event.test_loss);
  members.Read("evaluator", event.evaluator);
  members.Read("loss_scale", event.loss_scale);
  members.Read(*kind == Kind::kStep      ? "waiting"
               : *kind == Kind::kWaiting ? "text"
                                         : "message",
               event.text);
  ReadCounts(members, event.counts);
  members.Read("push_codecs", event.push_codecs);
  if (!members.status().ok()) return members.status();
  return event;
}

}  // namespace thinwire

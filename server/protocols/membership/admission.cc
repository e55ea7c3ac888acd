#include "server/protocols/membership/admission.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

// Returns true if a server has refused, so that another call would be refused as well.
bool IsRefusal(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) || absl::IsInvalidArgument(status) ||
         absl::IsUnimplemented(status) || absl::IsPermissionDenied(status) ||
         absl::IsUnauthenticated(status);
}

}  // namespace

absl::Status LostState(ServerId server, Epoch expected, Epoch got) {
  return absl::FailedPreconditionError(absl::StrCat(
      "server ", server.value, " lost its state: it was restarted (expected epoch ", expected.value,
      ", got ", got.value, "); restart all servers to begin a new run"));
}

Admission::Admission(AdmitRequest common, uint32_t server_count, Peers* peers, Executor& control,
                     std::function<void()> record)
    : common_(std::move(common)),
      peers_(peers),
      control_(control),
      record_(std::move(record)),
      epochs_(server_count) {}

void Admission::Restore(const std::vector<Epoch>& epochs) {
  std::copy_n(epochs.begin(), std::min(epochs.size(), epochs_.size()), epochs_.begin());
}

void Admission::Announce(WorkerId worker, Incarnation incarnation, absl::Time now, Done done) {
  if (epochs_.size() <= 1) return done(absl::OkStatus());
  const uint64_t number = next_number_++;
  Announcement& announcement = announcements_[number];
  announcement.request = common_;
  announcement.request.set_worker(worker.value);
  announcement.request.set_incarnation(incarnation.value);
  announcement.begin = now;
  announcement.done = std::move(done);
  Ask(number);
}

void Admission::Ask(uint64_t number) {
  Announcement& announcement = announcements_.at(number);
  for (uint32_t s = 1; s < epochs_.size(); ++s) {
    const ServerId server{s};
    if (announcement.admitted.contains(server)) continue;
    if (!announcement.pending.insert(server).second) continue;
    announcement.request.set_server(s);
    announcement.request.set_epoch(epochs_[s].value);
    peers_->Admit(
        server, announcement.request, [this, number, server](absl::StatusOr<AdmitReply> reply) {
          control_.Post(
              [this, number, server, reply = std::move(reply)] { OnReply(number, server, reply); });
        });
  }
}

void Admission::OnReply(uint64_t number, ServerId server, const absl::StatusOr<AdmitReply>& reply) {
  const auto found = announcements_.find(number);
  if (found == announcements_.end()) return;
  Announcement& announcement = found->second;
  announcement.pending.erase(server);
  if (!reply.ok()) {
    const absl::Status named(reply.status().code(),
                             absl::StrCat(peers_->NameOf(server), ": ", reply.status().message()));
    announcement.failed[server] = named;
    if (IsRefusal(named)) Finish(number, named);
    return;
  }
  announcement.admitted[server] = *reply;
  if (announcement.admitted.size() + 1 == epochs_.size()) Finish(number, Confirm(announcement));
}

absl::Status Admission::Confirm(const Announcement& announcement) {
  const std::vector<Epoch> before = epochs_;
  absl::Status status;
  for (const auto& [server, reply] : announcement.admitted) {
    const Epoch epoch{reply.epoch()};
    Epoch& known = epochs_[server.value];
    if (known == Epoch{} || reply.recovered()) known = epoch;
    if (known != epoch) status.Update(LostState(server, known, epoch));
  }
  if (epochs_ != before) record_();
  return status;
}

void Admission::Tick(absl::Time now) {
  std::map<uint64_t, absl::Status> ended;
  for (const auto& [number, announcement] : announcements_) {
    if (now - announcement.begin <= kPatience) {
      Ask(number);
      continue;
    }
    const std::string cause = announcement.failed.empty()
                                  ? peers_->NameOf(*announcement.pending.begin()) + ": no reply"
                                  : std::string(announcement.failed.begin()->second.message());
    ended[number] = absl::UnavailableError(absl::StrCat("server 0 cannot reach ", cause));
  }
  for (const auto& [number, status] : ended) Finish(number, status);
}

void Admission::Cancel(const absl::Status& status) {
  while (!announcements_.empty()) Finish(announcements_.begin()->first, status);
}

void Admission::Finish(uint64_t number, const absl::Status& status) {
  const Done done = std::move(announcements_.at(number).done);
  announcements_.erase(number);
  done(status);
}

}  // namespace thinwire

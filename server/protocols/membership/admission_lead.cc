#include "server/protocols/membership/admission_lead.h"

#include <glog/logging.h>

#include <string>
#include <utility>
#include <vector>

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

void AdmissionLead::Announce(WorkerId worker, Incarnation incarnation, absl::Time now, Done done) {
  if (state_.admitted.size() <= 1) return done(absl::OkStatus());
  const uint64_t number = next_number_++;
  Announcement& announcement = announcements_[number];
  announcement.request.set_job(state_.identity.job);
  announcement.request.set_run(state_.identity.run.value);
  announcement.request.set_token_key(tokens_.key());
  announcement.request.set_begins_again(state_.begins_again);
  announcement.request.set_worker(worker.value);
  announcement.request.set_incarnation(incarnation.value);
  announcement.begin = now;
  announcement.done = std::move(done);
  Ask(number);
}

void AdmissionLead::Ask(uint64_t number) {
  Announcement& announcement = announcements_.at(number);
  for (uint32_t s = 1; s < state_.admitted.size(); ++s) {
    const ServerId server{s};
    if (announcement.admitted.contains(server)) continue;
    if (!announcement.pending.insert(server).second) continue;
    announcement.request.set_server(s);
    announcement.request.set_epoch(state_.admitted[s].value);
    peers_->Call(
        server, announcement.request, [this, number, server](absl::StatusOr<AdmitReply> reply) {
          control_.Post(
              [this, number, server, reply = std::move(reply)] { OnReply(number, server, reply); });
        });
  }
}

void AdmissionLead::OnReply(uint64_t number, ServerId server,
                            const absl::StatusOr<AdmitReply>& reply) {
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
  if (announcement.admitted.size() + 1 == state_.admitted.size())
    Finish(number, Confirm(announcement));
}

absl::Status AdmissionLead::Confirm(const Announcement& announcement) {
  const std::vector<Epoch> before = state_.admitted;
  absl::Status status;
  for (const auto& [server, reply] : announcement.admitted) {
    const Epoch epoch{reply.epoch()};
    Epoch& known = state_.admitted[server.value];
    if (known == Epoch{} || reply.recovered()) known = epoch;
    if (known != epoch) status.Update(LostState(server, known, epoch));
  }
  if (state_.admitted == before) return status;
  store_.RecordLead([](const absl::Status& recorded) {
    if (!recorded.ok()) LOG(WARNING) << "admitted servers: " << recorded.message();
  });
  return status;
}

void AdmissionLead::Tick(absl::Time now) {
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

void AdmissionLead::Stop(const absl::Status& status) {
  while (!announcements_.empty()) Finish(announcements_.begin()->first, status);
}

void AdmissionLead::Finish(uint64_t number, const absl::Status& status) {
  const Done done = std::move(announcements_.at(number).done);
  announcements_.erase(number);
  done(status);
}

}  // namespace thinwire

#include "sim/mutant.h"

#include <utility>
#include <variant>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "server/durable/checkpoint.h"
#include "server/durable/lead_file.h"

namespace thinwire::sim {
namespace {

class BrokenPeers final : public Peers {
 public:
  BrokenPeers(Mutant mutant, std::unique_ptr<Peers> peers, ConfirmedRules& confirmed,
              std::function<std::optional<Step>(ServerId)> newest)
      : mutant_(mutant),
        confirmed_(mutant == Mutant::kServersNotReminded ? own_confirmed_ : confirmed),
        newest_(std::move(newest)),
        peers_(std::move(peers)) {}

  std::string NameOf(ServerId server) const override { return peers_->NameOf(server); }
  void Start(ServerId server, AnyPeerCall call) override {
    if (auto* const order = std::get_if<PeerCall<RollbackRequest>>(&call)) {
      if (mutant_ == Mutant::kRollbackToAnotherStep) {
        if (const std::optional<Step> step = newest_(server)) order->request.set_step(step->value);
      }
    } else if (auto* const change = std::get_if<PeerCall<SetModeRequest>>(&call)) {
      return PassRule(server, std::move(*change));
    } else if (auto* const sum = std::get_if<PeerCall<SumRequest>>(&call)) {
      if (mutant_ == Mutant::kSumsOfLeadAlone) {
        sum->done = [done = std::move(sum->done)](absl::StatusOr<SumReply> reply) {
          if (reply.ok()) {
            for (SquareSum& part : *reply->mutable_sums()) part.set_update(0);
          }
          done(std::move(reply));
        };
      }
    }
    peers_->Start(server, std::move(call));
  }

 private:
  void PassRule(ServerId server, PeerCall<SetModeRequest> call) {
    SetModeRequest rule = call.request;
    rule.clear_change();
    if (mutant_ == Mutant::kOldRuleFollowed) call.request.set_change(~uint64_t{0});
    const bool passes_once =
        mutant_ == Mutant::kRuleNotPassedOn || mutant_ == Mutant::kServersNotReminded;
    if (!passes_once) return peers_->Start(server, std::move(call));
    const auto known = confirmed_.find(server);
    if (known != confirmed_.end() &&
        known->second.SerializeAsString() == rule.SerializeAsString()) {
      return call.done(SetModeReply());
    }
    call.done = [this, server, rule, done = std::move(call.done)](const auto& reply) {
      if (reply.ok()) confirmed_[server] = rule;
      done(reply);
    };
    peers_->Start(server, std::move(call));
  }

  const Mutant mutant_;
  ConfirmedRules own_confirmed_;  // of this process of the lead
  ConfirmedRules& confirmed_;
  const std::function<std::optional<Step>(ServerId)> newest_;
  // Declared last, so that no call ends after the members that its callback uses.
  const std::unique_ptr<Peers> peers_;
};

absl::Status ForgetVerdicts(Files& files, const std::string& folder) {
  absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(files, folder);
  if (absl::IsNotFound(checkpoint.status())) return absl::OkStatus();
  RETURN_IF_ERROR(checkpoint.status());
  for (SavedShard& saved : checkpoint->shards) {
    for (WorkerRecord& row : saved.state.workers) row.last_push.reset();
  }
  return WriteCheckpoint(files, folder, *checkpoint, {.retention = {.newest_count = 1000}});
}

absl::Status ForgetRule(Files& files, const std::string& folder) {
  const absl::StatusOr<Checkpoint> checkpoint = ReadCheckpoint(files, folder);
  if (absl::IsNotFound(checkpoint.status())) return absl::OkStatus();
  RETURN_IF_ERROR(checkpoint.status());
  ASSIGN_OR_RETURN(std::optional<LeadState> state,
                   ReadLeadState(files, folder, checkpoint->run.run));
  if (!state.has_value()) return absl::OkStatus();
  state->clear_rule();
  return WriteLeadState(files, folder, *state);
}

}  // namespace

std::unique_ptr<Peers> BreakPeers(Mutant mutant, std::unique_ptr<Peers> peers,
                                  ConfirmedRules& confirmed,
                                  std::function<std::optional<Step>(ServerId)> newest) {
  return std::make_unique<BrokenPeers>(mutant, std::move(peers), confirmed, std::move(newest));
}

bool BreakFrame(Mutant mutant, ServerFrame& frame) {
  if (mutant != Mutant::kBegunTooEarly || frame.parameters.empty()) return false;
  for (ParametersEntry& entry : frame.parameters) ++entry.steps_ahead;
  return true;
}

absl::Status BreakState(Mutant mutant, FaultyFiles& files, const std::string& folder) {
  switch (mutant) {
    case Mutant::kVerdictNotSaved:
      return ForgetVerdicts(files, folder);
    case Mutant::kRuleNotStored:
      return ForgetRule(files, folder);
    case Mutant::kSentBeforeFlush:
      files.IgnoreFlushes([](const std::string& path) { return absl::StrContains(path, "/log-"); });
      return absl::OkStatus();
    default:
      return absl::OkStatus();
  }
}

}  // namespace thinwire::sim

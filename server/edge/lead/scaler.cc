#include "server/edge/lead/scaler.h"

#include <glog/logging.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/status_macros.h"

namespace thinwire {

Scaler::Scaler(std::string job, const Rule& rule, uint32_t server_count, Peers* peers, Post post,
               Server server)
    : job_(std::move(job)),
      first_(rule),
      server_count_(server_count),
      peers_(peers),
      post_(std::move(post)),
      server_(std::move(server)),
      rule_(rule),
      target_(rule.workers) {}

void Scaler::Restore(const Rule& rule) {
  rule_ = rule;
  target_ = rule.workers;
}

void Scaler::RestoreReduction(uint32_t workers) {
  target_ = workers == 0 ? rule_.workers : std::min(workers, rule_.workers);
}

absl::Status Scaler::ReserveRestored() { return server_.reserve(rule_.workers); }

absl::StatusOr<Rule> Scaler::RuleFor(uint32_t workers) const {
  const uint32_t backup_count = first_.fold == Fold::kRound ? first_.workers - first_.quorum : 0;
  if (workers <= backup_count || workers > first_.max_workers) {
    return absl::InvalidArgumentError(
        absl::StrCat("workers: out of range (expected ", backup_count + 1, " to ",
                     first_.max_workers, ", the value of max_workers, got ", workers, ")"));
  }
  Rule rule = first_;
  rule.workers = workers;
  if (rule.fold == Fold::kRound) rule.quorum = workers - backup_count;
  return rule;
}

void Scaler::Scale(uint32_t workers, const Done& done) {
  const absl::StatusOr<Rule> rule = RuleFor(workers);
  if (!rule.ok()) return done(rule.status());
  if (changing_) {
    return done(absl::UnavailableError("the last change of the number of workers is not complete"));
  }
  ScaleReply reply;
  reply.set_workers(target_);
  if (const auto more = change_lines_.Next(absl::Now())) {
    LOG(INFO) << "the operator changes the number of workers from " << target_ << " to " << workers
              << *more;
  }
  if (workers <= rule_.workers) {
    target_ = workers;
    return server_.record([done, reply] { done(reply); });
  }
  Increase(*rule, [this, workers, reply, done](const absl::Status& status) {
    if (!status.ok()) return done(status);
    target_ = workers;
    done(reply);
  });
}

void Scaler::Increase(const Rule& rule, std::function<void(const absl::Status&)> done) {
  const absl::Status reserved = server_.reserve(rule.workers);
  if (!reserved.ok()) return done(reserved);
  Change(rule, [this, done = std::move(done)](const absl::Status& status) {
    done(status);
    if (status.ok()) return;
    // Other servers may have applied the new rule already.
    server_.reserve(rule_.workers).IgnoreError();
    Change(rule_, [](const absl::Status&) {});
  });
}

void Scaler::Become(const Rule& rule) {
  // Fits, because Increase has reserved the memory of more workers.
  server_.reserve(rule.workers).IgnoreError();
  if (rule != rule_) server_.apply(rule);
  rule_ = rule;
}

void Scaler::Follow(uint32_t workers, const Done& done) {
  const absl::StatusOr<Rule> rule = RuleFor(workers);
  if (!rule.ok()) return done(rule.status());
  ScaleReply reply;
  reply.set_workers(rule_.workers);
  const absl::Status reserved = server_.reserve(workers);
  if (!reserved.ok()) return done(reserved);
  Become(*rule);
  target_ = workers;
  done(reply);
}

void Scaler::Tick(bool may_shrink) {
  if (target_ >= rule_.workers || !may_shrink || changing_) return;
  const absl::StatusOr<Rule> rule = RuleFor(target_);
  if (!rule.ok()) return;
  Change(*rule, [this](const absl::Status& status) {
    // The next Tick tries again.
    if (!status.ok() && status != last_error_) {
      LOG(WARNING) << "number of workers: " << status.message();
    }
    last_error_ = status;
  });
}

void Scaler::Change(const Rule& rule, std::function<void(const absl::Status&)> done) {
  struct Replies {
    uint32_t missing_count;
    absl::Status status;
  };
  changing_ = true;
  const auto finish = [this, rule, done = std::move(done)](const absl::Status& status) {
    changing_ = false;
    if (status.ok()) Become(rule);
    done(status);
  };
  if (server_count_ <= 1) return finish(absl::OkStatus());
  ScaleRequest request;
  request.set_job(job_);
  request.set_workers(rule.workers);
  const auto replies = std::make_shared<Replies>(Replies{server_count_ - 1, absl::OkStatus()});
  for (uint32_t s = 1; s < server_count_; ++s) {
    peers_->Scale(
        ServerId{s}, request, [this, s, replies, finish](const absl::StatusOr<ScaleReply>& reply) {
          post_([this, s, replies, finish, status = reply.status()] {
            if (!status.ok()) {
              replies->status.Update(
                  absl::Status(status.code(),
                               absl::StrCat(peers_->NameOf(ServerId{s}), ": ", status.message())));
            }
            if (--replies->missing_count == 0) finish(replies->status);
          });
        });
  }
}

}  // namespace thinwire

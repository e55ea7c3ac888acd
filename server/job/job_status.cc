#include "server/job/job_status.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"
#include "server/core/event.h"
#include "server/core/shard.h"
#include "server/durable/event_log.h"
#include "server/shards/shard_host.h"

namespace thinwire {
namespace {

struct ShardReport {
  ShardStatus status;
  Rule rule;
  std::optional<RuleEvent> next_rule;
  absl::Time progressed;
  std::vector<Step> next;  // for each worker: its `next` (docs/glossary.md)
};

ShardReport ReportOf(const ShardHost& host, const Shard& shard, uint32_t worker_count) {
  ShardReport report;
  report.status.set_shard(host.id().value);
  report.status.set_values(host.value_count());
  report.status.set_open(shard.open());
  report.status.set_version(shard.version().value);
  report.status.set_frontier(shard.frontier().value);
  report.rule = shard.rule();
  report.next_rule = shard.next_rule();
  report.status.set_saturated_updates(shard.saturated_updates());
  const NoiseEstimate& noise = shard.noise();
  report.status.set_gradient_variance(noise.variance);
  report.status.set_squared_gradient(noise.squared_gradient);
  report.status.set_noise_rounds(noise.rounds);
  report.progressed = host.progress().last();
  const absl::Duration usual = host.progress().usual().value_or(absl::ZeroDuration());
  report.status.set_progress_seconds(absl::ToDoubleSeconds(usual));
  for (uint32_t w = 0; w < worker_count; ++w) report.next.push_back(shard.next(WorkerId{w}));
  return report;
}

void SetRule(const Rule& rule, StatusReply& reply) {
  reply.set_mode(std::string(rule.mode()));
  reply.clear_backup();
  reply.clear_slack();
  if (rule.fold == Fold::kRound) reply.set_backup(rule.workers - rule.quorum);
  if (rule.mode() == "ssp") {
    reply.set_slack(static_cast<uint32_t>(std::min<uint64_t>(rule.slack, UINT32_MAX)));
  }
}

// Adds everything except shards and workers to REPLY.
void AddServer(const StatusParts& parts, StatusReply& reply) {
  const JobIdentity& identity = parts.state.identity;
  reply.set_job(identity.job);
  reply.set_server(identity.server.value);
  reply.set_generation(identity.generation.value);
  reply.set_epoch(identity.epoch.value);
  reply.set_run(identity.run.value);
  reply.set_sealed(parts.model.Get() != nullptr);
  SetRule(parts.state.rule.rule(), reply);
  reply.set_target_workers(parts.state.rule.target());
  reply.set_stopping(parts.state.stopping || parts.state.membership.StopStep().has_value());
  parts.counters.FillIn(reply);
  reply.set_buffered_bytes(parts.frames.held_bytes());
  if (parts.journal.logs()) {
    const EventLog::Counts counts = parts.journal.counts();
    reply.set_log_records(counts.records);
    reply.set_log_bytes(counts.bytes);
    reply.set_log_commits(counts.commits);
  }
}

// Adds the status of every shard to REPLY.
void AddShards(const std::vector<ShardReport>& reports, absl::Time now, StatusReply& reply) {
  for (const ShardReport& report : reports) {
    ShardStatus& status = *reply.add_shards();
    status = report.status;
    status.set_progress_seconds_ago(absl::ToDoubleSeconds(now - report.progressed));
    SetRule(report.rule, reply);
    if (!report.next_rule.has_value()) continue;
    const std::string next_mode(report.next_rule->rule.mode());
    if (next_mode == report.rule.mode()) continue;  // only a number changes
    reply.set_next_mode(next_mode);
    reply.set_next_mode_step(report.next_rule->from.value);
  }
}

// Adds the status of every worker that ever joined to REPLY.
void AddWorkers(const std::vector<ShardReport>& reports, const Membership& membership,
                absl::Time now, StatusReply& reply) {
  for (uint32_t w = 0; w < membership.worker_count(); ++w) {
    const Member& member = membership.of(WorkerId{w});
    if (member.incarnation.value == 0) continue;
    WorkerStatus& status = *reply.add_workers();
    status.set_worker(w);
    status.set_incarnation(member.incarnation.value);
    status.set_live(member.live());
    status.set_left(member.left);
    status.set_heard_seconds_ago(absl::ToDoubleSeconds(now - member.heard));
    status.set_lease_seconds_left(member.left ? 0
                                              : absl::ToDoubleSeconds(member.lease_end() - now));
    status.set_finished(member.departure.finished);
    status.set_failed(member.departure.failed);
    status.set_diverged(member.departure.diverged);
    if (reports.empty()) continue;
    Step smallest = reports[0].next[w];
    for (const ShardReport& report : reports) smallest = std::min(smallest, report.next[w]);
    status.set_next(smallest.value);
  }
}

}  // namespace

void GatherStatus(const StatusParts& parts, Executor& control, StatusReply reply,
                  std::function<void(StatusReply)> done) {
  AddServer(parts, reply);
  const std::shared_ptr<const HostedModel> model = parts.model.Get();
  if (model == nullptr) return done(std::move(reply));
  model->FillIn(reply);
  const auto report = [worker_count = parts.state.membership.worker_count()](const ShardHost& host,
                                                                             const Shard& shard) {
    return ReportOf(host, shard, worker_count);
  };
  model->ForAllShards<ShardReport>(
      report, [parts, &control, reply = std::move(reply),
               done = std::move(done)](std::vector<ShardReport> reports) {
        control.Post([parts, reply, done, reports = std::move(reports)]() mutable {
          const absl::Time now = parts.clock.Now();
          AddShards(reports, now, reply);
          AddWorkers(reports, parts.state.membership, now, reply);
          done(std::move(reply));
        });
      });
}

}  // namespace thinwire

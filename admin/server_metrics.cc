#include "admin/server_metrics.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "admin/job_condition.h"
#include "admin/job_summary.h"
#include "proto/control.pb.h"

namespace thinwire {
namespace {

constexpr std::array<double, 10> kStalenessBounds = {0, 1, 2, 4, 8, 16, 32, 64, 256, 1024};

struct ServerCounter {
  const char* metric;
  const char* help;
  uint64_t (StatusReply::*count)() const;
};

constexpr ServerCounter kCounters[] = {
    {"server_lease_expirations_total", "Leases of workers that expired.",
     &StatusReply::lease_expirations},
    {"server_split_steps_total", "Steps for which shards accepted gradients of different workers.",
     &StatusReply::split_steps},
    {"server_dropped_pushes_total", "Refused pushes that were too stale for staleness_policy drop.",
     &StatusReply::dropped_pushes},
    {"server_uncompensated_pushes_total",
     "Stale pushes that staleness_policy dcasgd could not compensate.",
     &StatusReply::uncompensated_pushes},
    {"server_push_payload_bytes_total", "Bytes of encoded gradients received.",
     &StatusReply::push_payload_bytes},
    {"server_parameters_payload_bytes_total", "Bytes of encoded parameters sent.",
     &StatusReply::parameters_payload_bytes},
    {"server_sent_bytes_total", "Bytes of the messages sent on data streams.",
     &StatusReply::stream_sent_bytes},
    {"server_received_bytes_total", "Bytes of the messages received on data streams.",
     &StatusReply::stream_received_bytes},
    {"server_seed_payload_bytes_total", "Bytes of first values received.",
     &StatusReply::seed_payload_bytes},
    {"server_log_records_total", "Records written to the event log.", &StatusReply::log_records},
    {"server_log_bytes_total", "Bytes written to the event log.", &StatusReply::log_bytes},
    {"server_log_commits_total", "Times that the event log was flushed to disk.",
     &StatusReply::log_commits},
    {"server_checkpoints_total", "Completed checkpoints.", &StatusReply::checkpoints},
    {"server_failed_checkpoints_total", "Checkpoints that could not be written.",
     &StatusReply::failed_checkpoints},
    {"server_checkpoint_bytes_total", "Bytes of completed checkpoints.",
     &StatusReply::checkpoint_bytes},
    {"server_saturated_updates_total",
     "Updates that left a parameter or optimizer slot at the largest float.",
     &StatusReply::saturated_updates},
    {"server_clipped_updates_total", "Updates whose gradient was scaled down to clip_norm.",
     &StatusReply::clipped_updates}};

struct ServerTime {
  const char* metric;
  const char* help;
  double (StatusReply::*seconds)() const;
};

constexpr ServerTime kTimes[] = {
    {"server_checkpoint_seconds_total", "Time of writing the completed checkpoints.",
     &StatusReply::checkpoint_seconds},
    {"server_decode_seconds_total", "Time of decoding, summing and applying gradients.",
     &StatusReply::decode_seconds},
    {"server_encode_seconds_total", "Time of encoding parameters.", &StatusReply::encode_seconds}};

}  // namespace

void AddServerMetrics(const ServerHistory& server, absl::Time now, MetricList& metrics) {
  const StatusReply* reply = server.latest();
  if (reply == nullptr) return;
  for (const PushVerdict& verdict : PushVerdicts()) {
    metrics.Counter("server_pushes_total", "Pushes of one shard and one step, by verdict.",
                    static_cast<double>((reply->*verdict.count)()), {{"verdict", verdict.name}});
  }
  for (const ServerCounter& counter : kCounters) {
    metrics.Counter(counter.metric, counter.help, static_cast<double>((reply->*counter.count)()));
  }
  for (const ServerTime& time : kTimes) {
    metrics.Counter(time.metric, time.help, (reply->*time.seconds)());
  }
  metrics.Histogram("server_push_staleness_updates",
                    "Updates between the version of an accepted push and its acceptance.",
                    {reply->staleness().begin(), reply->staleness().end()}, kStalenessBounds);
  const std::span<const ServerHistory> own(&server, 1);
  const JobSummary summary = SummaryOf(own, now);
  metrics.Gauge("server_live_workers", "Workers with a valid lease.",
                static_cast<double>(summary.live.size()));
  metrics.Gauge("server_joined_workers", "Workers that ever joined.", summary.worker_count);
  metrics.Gauge("server_target_workers", "Workers that the operator wants.",
                reply->target_workers());
  if (!reply->mode().empty()) {
    metrics.Gauge("server_mode_info", "1, with the mode in force.", 1, {{"mode", reply->mode()}});
  }
  if (reply->has_backup()) {
    metrics.Gauge("server_backup_workers", "The backup workers of the rule in force.",
                  reply->backup());
  }
  if (reply->has_slack()) {
    metrics.Gauge("server_slack_steps", "The slack of the rule in force.", reply->slack());
  }
  metrics.Gauge("server_next_mode_step", "The first step of an announced mode; 0: none.",
                static_cast<double>(reply->next_mode_step()));
  metrics.Gauge("server_batch_examples", "Examples of an update; 0: the batch does not grow.",
                reply->batch());
  metrics.Gauge("server_wished_workers",
                "Workers that would make the batch without accumulation; 0: none accumulates.",
                reply->wished_workers());
  metrics.Gauge("server_gradient_norm",
                "Norm of the newest averaged gradient before clipping; 0: no clip_norm.",
                reply->gradient_norm());
  double heard = 0;
  for (const auto& [number, worker] : WorkersOf(own, now)) {
    if (worker.live) heard = std::max(heard, absl::ToDoubleSeconds(worker.heard));
  }
  metrics.Gauge("server_worker_silence_seconds", "The longest silence of a live worker.", heard);
  metrics.Gauge("server_shards", "Shards of this server.", reply->shards_size());
  const auto open = std::ranges::count_if(reply->shards(), &ShardStatus::open);
  metrics.Gauge("server_open_shards", "Shards that accept pushes.", static_cast<double>(open));
  metrics.Gauge("server_parameters", "Parameters of this server.",
                static_cast<double>(ValueCountOf(*reply)));
  metrics.Gauge("server_gradient_variance",
                "Variance of the gradient of one example, summed over the values.",
                summary.noise.variance);
  metrics.Gauge("server_squared_gradient", "Squared norm of the mean gradient, an estimate.",
                summary.noise.squared_gradient);
  metrics.Gauge("server_step", "The first step that some shard has not finished.",
                static_cast<double>(server.step()));
  metrics.Gauge("server_step_age_seconds", "Time for which server_step has been the open step.",
                absl::ToDoubleSeconds(server.step_age()));
  metrics.Gauge("server_unfinished_workers", "Live workers that have not finished server_step.",
                static_cast<double>(summary.unfinished.size()));
  metrics.Gauge("server_generation", "The generation of the run.",
                static_cast<double>(reply->generation()));
  metrics.Gauge("server_buffered_bytes", "Bytes of received messages in memory.",
                static_cast<double>(reply->buffered_bytes()));
  metrics.Gauge("server_queued_events", "Received events that no shard has applied yet.",
                static_cast<double>(reply->queued_events()));
  metrics.Gauge("server_log_replay_records", "Log records since the last checkpoint.",
                static_cast<double>(server.replay_record_count()));
  metrics.Gauge("server_log_replay_bytes", "Log bytes since the last checkpoint.",
                static_cast<double>(server.replay_bytes()));
  if (server.checkpointed()) {
    metrics.Gauge("server_checkpoint_age_seconds", "Time since the last checkpoint.",
                  absl::ToDoubleSeconds(now - *server.checkpointed()));
  }
  metrics.Gauge("server_awaits_rollback",
                "1 if the server waits for the lead's decision after its restart.",
                reply->awaits_rollback() ? 1 : 0);
  if (reply->run() != 0) {
    metrics.Gauge("server_run_info", "1, with the run that the server belongs to.", 1,
                  {{"run", absl::StrFormat("%016x", reply->run())}});
  }
  metrics.Gauge("server_status_age_seconds", "Age of the figures above.",
                absl::ToDoubleSeconds(now - server.answered()));
}

void AddJobMetrics(std::span<const ServerHistory> servers, absl::Time now, bool stopping,
                   MetricList& metrics) {
  JobCondition condition = ConditionOf(servers, SummaryOf(servers, now), now);
  if (stopping) condition.state = JobCondition::State::kStopping;
  for (const JobCondition::State state : JobStates()) {
    metrics.Gauge("job_state", "1 for the state of the job, otherwise 0.",
                  state == condition.state ? 1 : 0, {{"state", NameOf(state)}});
  }
  if (condition.state == JobCondition::State::kWaiting) {
    metrics.Gauge("job_waiting_seconds", "Time without progress of a job that waits.",
                  absl::ToDoubleSeconds(condition.waiting), {{"cause", NameOf(condition.cause)}});
  }
  if (condition.state == JobCondition::State::kDiverged) {
    metrics.Gauge("job_diverged_info", "1, with the symptom of a job that has diverged.", 1,
                  {{"symptom", condition.symptom}});
  }
  metrics.Gauge("job_lost_workers", "Workers that are missing because of a failure.",
                static_cast<double>(condition.lost.size()));
  for (const ServerHistory& server : servers) {
    const uint32_t number = server.server().value;
    metrics.Gauge("job_server_reachable", "1 if the server answers, otherwise 0.",
                  server.outage(now) > absl::ZeroDuration() ? 0 : 1,
                  {{"server", absl::StrCat(number)}});
  }
}

}  // namespace thinwire

#include "admin/job_summary.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "admin/html.h"
#include "proto/precision.pb.h"
#include "proto/precision_text.h"

namespace thinwire {
namespace {

using html::CountText;

constexpr PushVerdict kVerdicts[] = {
    {"accepted", &StatusReply::accepted_pushes}, {"late", &StatusReply::late_pushes},
    {"repeated", &StatusReply::repeated_pushes}, {"refused", &StatusReply::refused_pushes},
    {"fenced", &StatusReply::fenced_pushes},     {"stale", &StatusReply::stale_pushes},
    {"early", &StatusReply::early_pushes}};

TrainingStatus TrainingOf(const TrainingCurves& curves, const StatusReply& lead) {
  TrainingStatus training = {.steps_per_second = curves.steps_per_second()};
  for (const WorkerStatus& worker : lead.workers()) {
    const WorkerProgress* const progress = ProgressOf(lead, worker.worker());
    if (progress == nullptr) continue;
    training.planned_steps = std::max<uint64_t>(training.planned_steps, progress->planned_steps());
    if (!worker.live()) continue;
    training.examples_per_second += SpeedOf(*progress);
    if (!progress->push().empty()) training.push.insert(progress->push());
    if (!progress->pull().empty()) training.pull = progress->pull();
  }
  if (const auto newest = curves.loss().newest()) training.loss = newest->y;
  if (const ModelTest* const test = NewestTestOf(lead)) training.test = *test;
  return training;
}

}  // namespace

std::span<const PushVerdict> PushVerdicts() { return kVerdicts; }

uint64_t ValueCountOf(const StatusReply& reply) {
  uint64_t count = 0;
  for (const ShardStatus& shard : reply.shards()) count += shard.values();
  return count;
}

void NoiseSums::Add(const StatusReply& reply) {
  for (const ShardStatus& shard : reply.shards()) {
    variance += shard.gradient_variance();
    squared_gradient += shard.squared_gradient();
  }
}

std::optional<double> NoiseSums::scale() const {
  if (variance <= 0 || squared_gradient <= 0) return std::nullopt;
  return variance / squared_gradient;
}

RuleStatus RuleStatusOf(const StatusReply& reply) {
  RuleStatus rule = {.mode = reply.mode()};
  if (reply.has_backup()) rule.backup = reply.backup();
  if (reply.has_slack()) rule.slack = reply.slack();
  return rule;
}

void BatchStatus::Add(const StatusReply& reply) {
  if (reply.batch() == 0) return;
  *this = {.examples = reply.batch(),
           .accumulate = reply.accumulate(),
           .epoch_examples = reply.epoch_examples(),
           .wished_workers = reply.wished_workers()};
}

void ClippingStatus::Add(const StatusReply& reply) {
  if (reply.gradient_norm() == 0) return;
  *this = {.gradient_norm = reply.gradient_norm(), .clipped_updates = reply.clipped_updates()};
}

double SpeedOf(const WorkerProgress& progress) {
  if (progress.seconds() <= 0) return 0;
  return static_cast<double>(progress.examples()) / progress.seconds();
}

const char* WorkerSight::state() const {
  if (left) return "left";
  return live ? "live" : "not live";
}

std::map<uint32_t, WorkerSight> WorkersOf(std::span<const ServerHistory> servers, absl::Time now) {
  std::map<uint32_t, WorkerSight> workers;
  for (const ServerHistory& server : servers) {
    const StatusReply* reply = server.current(now);
    if (reply == nullptr) continue;
    const absl::Duration age = now - server.answered();
    for (const WorkerStatus& status : reply->workers()) {
      // The servers are in ascending order, and the first one, the lead, decides who is a member.
      const auto [it, is_new] = workers.try_emplace(status.worker());
      WorkerSight& worker = it->second;
      if (is_new) {
        worker.incarnation = status.incarnation();
        worker.live = status.live();
        worker.left = status.left();
        worker.finished = status.finished();
        worker.failed = status.failed();
        worker.diverged = status.diverged();
        // 0: an older server, which does not state the lease.
        worker.lease_left = absl::Seconds(status.lease_seconds_left()) - age;
        worker.silent = worker.live && status.lease_seconds_left() != 0 &&
                        worker.lease_left < absl::Seconds(status.heard_seconds_ago()) + age;
      }
      if (const auto* progress = ProgressOf(*reply, status.worker())) worker.progress = *progress;
      worker.next = std::min<uint64_t>(worker.next, status.next());
      worker.heard = std::min(worker.heard, absl::Seconds(status.heard_seconds_ago()) + age);
    }
  }
  return workers;
}

std::string NumbersText(const char* noun, const std::vector<uint32_t>& numbers) {
  return absl::StrCat(noun, numbers.size() == 1 ? " " : "s ", absl::StrJoin(numbers, ", "));
}

std::string NoiseScaleText(const NoiseSums& noise) {
  const std::optional<double> scale = noise.scale();
  if (!scale) return "-";
  if (*scale > 1e15) return "more than 10^15 examples";
  const std::string number = *scale < 100 ? absl::StrFormat("%.3g", *scale)
                                          : CountText(static_cast<uint64_t>(std::llround(*scale)));
  return absl::StrCat(number, " examples");
}

std::string BatchText(const BatchStatus& batch) {
  if (batch.examples == 0) return "-";
  std::string text = absl::StrCat(CountText(batch.examples), " examples, ", batch.accumulate,
                                  batch.accumulate == 1 ? " batch" : " batches", " per worker");
  if (batch.wished_workers > 0) {
    absl::StrAppend(&text, ", ", batch.wished_workers, " workers wished");
  }
  return text;
}

std::string ClippingText(const ClippingStatus& clipping) {
  if (clipping.gradient_norm == 0) return "-";
  return absl::StrCat("norm ", absl::StrFormat("%.3g", clipping.gradient_norm), ", ",
                      CountText(clipping.clipped_updates), " updates clipped");
}

std::string InsecureText(const std::vector<uint32_t>& servers) {
  return absl::StrCat("INSECURE: ", NumbersText("server", servers),
                      servers.size() == 1 ? " listens" : " listen",
                      " for other machines without credentials");
}

std::string StepText(const JobSummary& summary) {
  const uint64_t planned = summary.training.planned_steps;
  if (planned == 0) return CountText(summary.step);
  return absl::StrCat(CountText(summary.step), " of ", CountText(planned));
}

std::string SpeedText(const TrainingStatus& training) {
  std::vector<std::string> texts;
  if (training.steps_per_second.has_value()) {
    texts.push_back(absl::StrCat(html::NumberText(*training.steps_per_second), " steps/s"));
  }
  if (training.examples_per_second > 0) {
    texts.push_back(absl::StrCat(html::NumberText(training.examples_per_second), " examples/s"));
  }
  return texts.empty() ? "-" : absl::StrJoin(texts, ", ");
}

std::string TimeLeftText(const TrainingStatus& training) {
  return training.left.has_value() ? html::TimeLeftText(*training.left) : "-";
}

std::string CodecsText(const TrainingStatus& training) {
  if (training.push.empty()) return "-";
  return absl::StrCat("push ", absl::StrJoin(training.push, " or "), "; pull ", training.pull);
}

std::string TestText(const ModelTest& test) {
  const std::string step = absl::StrCat(" at step ", CountText(test.step()));
  if (test.has_accuracy())
    return absl::StrCat("accuracy ", html::NumberText(test.accuracy()), step);
  return test.has_loss() ? absl::StrCat("loss ", html::NumberText(test.loss()), step) : "-";
}

JobSummary SummaryOf(std::span<const ServerHistory> servers, absl::Time now) {
  JobSummary summary;
  uint64_t step = std::numeric_limits<uint64_t>::max();
  double push_fp32 = 0;
  bool outage = false;
  for (const ServerHistory& server : servers) {
    const StatusReply* reply = server.current(now);
    outage |= server.outage(now) > absl::ZeroDuration();
    if (reply == nullptr) continue;
    ++summary.answered_count;
    summary.generation = std::max<uint64_t>(summary.generation, reply->generation());
    if (summary.job.empty()) summary.job = reply->job();
    if (summary.target_workers == 0) summary.target_workers = reply->target_workers();
    if (summary.rule.mode.empty()) summary.rule = RuleStatusOf(*reply);
    if (!reply->next_mode().empty()) {
      summary.next_mode =
          absl::StrCat(reply->next_mode(), " from step ", reply->next_mode_step(), " on");
    }
    if (reply->precision_decisions_size() > 0) {
      const PrecisionDecision& last = *reply->precision_decisions().rbegin();
      summary.push_choice =
          absl::StrCat(ChosenText(last), " up to step ", CountText(last.next_step()));
    }
    if (reply->insecure()) summary.insecure.push_back(server.server().value);
    for (const PushVerdict& verdict : kVerdicts) {
      summary.verdicts[verdict.name] += (reply->*verdict.count)();
    }
    for (const auto& [value, count] : reply->staleness()) summary.staleness[value] += count;
    summary.noise.Add(*reply);
    summary.batch.Add(*reply);
    summary.clipping.Add(*reply);
    if (!reply->progress().empty()) summary.training = TrainingOf(server.curves(), *reply);
    summary.push_bytes += reply->push_payload_bytes();
    summary.parameter_bytes += reply->parameters_payload_bytes();
    if (reply->shards().empty()) continue;
    step = std::min(step, server.step());
    const double shard_bytes = static_cast<double>(ValueCountOf(*reply)) * sizeof(float) /
                               static_cast<double>(reply->shards_size());
    push_fp32 += shard_bytes * static_cast<double>(reply->accepted_pushes() + reply->late_pushes());
  }
  if (step != std::numeric_limits<uint64_t>::max()) summary.step = step;
  TrainingStatus& training = summary.training;
  if (training.steps_per_second.has_value() && training.planned_steps > summary.step) {
    training.left = absl::Seconds(static_cast<double>(training.planned_steps - summary.step) /
                                  *training.steps_per_second);
  }
  for (const ServerHistory& server : servers) {
    const StatusReply* reply = server.current(now);
    if (reply == nullptr || reply->shards().empty()) continue;
    if (server.step() == summary.step) {
      summary.step_age = std::max(summary.step_age, server.step_age());
    }
  }
  // Each judged push is also a read, so about as many parameters were sent as gradients received.
  summary.push_fp32_bytes = static_cast<uint64_t>(push_fp32);
  summary.parameter_fp32_bytes = summary.push_fp32_bytes;
  double pushes = 0;
  for (const auto& [value, count] : summary.staleness) {
    summary.mean_staleness += static_cast<double>(value) * static_cast<double>(count);
    pushes += static_cast<double>(count);
  }
  if (pushes > 0) summary.mean_staleness /= pushes;
  const std::map<uint32_t, WorkerSight> workers = WorkersOf(servers, now);
  summary.worker_count = static_cast<uint32_t>(workers.size());
  for (const auto& [number, worker] : workers) {
    if (!worker.live) continue;
    summary.live.push_back(number);
    if (!outage && worker.next <= summary.step) summary.unfinished.push_back(number);
  }
  return summary;
}

std::string ModeText(const JobSummary& summary) {
  const RuleStatus& rule = summary.rule;
  if (rule.mode.empty()) return "-";
  std::string text = rule.mode;
  if (rule.backup.value_or(0) > 0) absl::StrAppend(&text, " ", *rule.backup);
  if (rule.slack.has_value()) absl::StrAppend(&text, " ", *rule.slack);
  if (!summary.next_mode.empty()) absl::StrAppend(&text, ", ", summary.next_mode);
  return text;
}

}  // namespace thinwire

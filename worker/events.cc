#include "worker/events.h"

#include <nlohmann/json.hpp>

namespace thinwire {
namespace {

using Json = nlohmann::ordered_json;

Json Line(const char* event, WorkerId worker) {
  return {{"event", event}, {"worker", worker.value}};
}

// The mean, or null where there is none or it is not finite, which JSON cannot say.
Json Mean(double sum, uint64_t count) {
  return count == 0 ? Json(nullptr) : Json(sum / static_cast<double>(count));
}

Json Loss(const BatchResult& result) { return Mean(result.loss_sum, result.examples); }

Json Accuracy(const BatchResult& result) {
  return Mean(static_cast<double>(result.correct), result.examples);
}

void AddTraffic(const ClientStatistics& statistics, Json& line) {
  line["push_bytes_raw"] = statistics.push_bytes_raw;
  line["push_bytes_encoded"] = statistics.push_bytes_encoded;
  line["pull_bytes_raw"] = statistics.pull_bytes_raw;
  line["pull_bytes_encoded"] = statistics.pull_bytes_encoded;
  line["sent_bytes"] = statistics.sent_bytes;
  line["received_bytes"] = statistics.received_bytes;
}

void AddLossScale(const std::optional<LossScale>& loss_scale, Json& line) {
  if (!loss_scale) return;
  line["loss_scale"] = loss_scale->value();
  line["overflowed_steps"] = loss_scale->overflow_count();
}

}  // namespace

void EventLog::Joined(Step step, const std::string& device) {
  Json line = Line("joined", worker_);
  line["step"] = step.value;
  line["device"] = device;
  Write(line);
}

void EventLog::Stepped(const StepEvent& event) {
  Json line = Line("step", worker_);
  line["step"] = event.step.value;
  line["epoch"] = event.epoch;
  line["loss"] = Loss(event.since_last);
  line["examples"] = event.examples;
  line["seconds"] = absl::ToDoubleSeconds(event.elapsed);
  AddTraffic(event.statistics, line);
  line["late_pushes"] = event.statistics.late_pushes;
  AddLossScale(event.loss_scale, line);
  line["waiting"] = event.waiting;
  Write(line);
}

void EventLog::FinishedEpoch(const EpochEvent& event) {
  Json line = Line("epoch", worker_);
  line["epoch"] = event.epoch;
  line["train_loss"] = Loss(event.train);
  if (event.test) {
    line["test_accuracy"] = Accuracy(*event.test);
    line["test_loss"] = Loss(*event.test);
  }
  line["seconds"] = absl::ToDoubleSeconds(event.elapsed);
  AddTraffic(event.statistics, line);
  Write(line);
}

void EventLog::Waits(const std::string& text) {
  Json line = Line("waiting", worker_);
  line["text"] = text;
  Write(line);
}

void EventLog::Done(const DoneEvent& event) {
  const ClientStatistics& statistics = event.statistics;
  Json line = Line("done", worker_);
  line["steps"] = event.steps;
  line["examples"] = event.examples;
  line["seconds"] = absl::ToDoubleSeconds(event.elapsed);
  line["median_step_seconds"] = absl::ToDoubleSeconds(event.median_step);
  line["final_train_loss"] = Loss(event.last_train);
  line["evaluator"] = event.test.has_value();
  if (event.test) {
    line["final_test_accuracy"] = Accuracy(*event.test);
    line["final_test_loss"] = Loss(*event.test);
  }
  AddTraffic(statistics, line);
  line["accepted_pushes"] = statistics.accepted_pushes;
  line["late_pushes"] = statistics.late_pushes;
  line["repeated_pushes"] = statistics.repeated_pushes;
  line["refused_pushes"] = statistics.refused_pushes;
  line["nonfinite_gradients"] = statistics.nonfinite_gradients;
  line["jumped_steps"] = statistics.jumped_steps;
  line["lost_put_backs"] = statistics.lost_put_backs;
  line["differing_replicas"] = statistics.differing_replicas;
  line["reconnects"] = statistics.reconnects;
  AddLossScale(event.loss_scale, line);
  for (const GroupCodec& group : event.push_codecs) {
    line["push_codecs"].push_back(
        {{"group", group.group}, {"codec", group.codec}, {"reason", group.reason}});
  }
  Write(line);
}

void EventLog::Failed(const absl::Status& status) {
  Json line = Line("error", worker_);
  line["message"] = std::string(status.message());
  Write(line);
}

void EventLog::Write(const Json& line) {
  // A name out of a file may not be UTF-8; the line must stay JSON.
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace);
  absl::MutexLock lock(&mu_);
  out_ << text << std::endl;
}

}  // namespace thinwire

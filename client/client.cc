#include "client/client.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/core/client_core.h"
#include "client/exchange/status_report.h"
#include "client/replica/replica.h"
#include "common/base/status_macros.h"
#include "common/spec/place_tensors.h"
#include "common/text/quoted.h"

namespace thinwire {
namespace {

absl::Status CheckOwned(const std::vector<uint32_t>& owned,
                        const std::vector<TensorShape>& tensors) {
  if (owned.back() >= tensors.size() ||
      std::ranges::adjacent_find(owned, std::ranges::greater_equal()) != owned.end()) {
    return absl::InvalidArgumentError(
        absl::StrCat("owned_tensors: expected ascending numbers below ", tensors.size(), ", got ",
                     absl::StrJoin(owned, " ")));
  }
  if (tensors.front().apart) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "owned_tensors: only valid in a job with members above 1 (expected members: 2 or more, got "
      "1)");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::Make(ClientOptions options,
                                                     std::vector<TensorShape> tensors,
                                                     Transport& transport, ExecutorFactory& threads,
                                                     const Device* device) {
  RETURN_IF_ERROR(PlaceTensors(options.groups, tensors));
  ASSIGN_OR_RETURN(Partition partition,
                   Partition::Make(std::move(tensors), options.shard_size, options.server_count));
  if (!options.owned_tensors.empty()) {
    RETURN_IF_ERROR(CheckOwned(options.owned_tensors, partition.tensors()));
    partition = partition.Of(options.owned_tensors);
  }
  if (options.fragments < 1 || options.fragments > partition.shard_count()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "fragments: out of range (expected 1 to ", partition.shard_count(),
        ", the number of the model's shards, which a smaller shard_size increases, got ",
        options.fragments, ")"));
  }
  if (const auto shared = partition.SharedTensor(); shared.has_value() && options.fragments > 1) {
    // No shard of the tensor answers before all of them have their pushes.
    return absl::InvalidArgumentError(absl::StrCat(
        "fragments: not possible with optimizer lars or lamb and a tensor of more than ",
        kLargestShardSize, " values (expected 1, got ", options.fragments, " with tensor ",
        Quoted(partition.tensors()[*shared].name), ")"));
  }
  std::unique_ptr<Client> client(
      new Client(std::move(options), std::move(partition), transport, threads, device));
  RETURN_IF_ERROR(client->Init());
  return client;
}

Client::Client(ClientOptions options, Partition partition, Transport& transport,
               ExecutorFactory& threads, const Device* device)
    : thread_(std::move(options), std::move(partition), transport, threads, device) {}

Client::~Client() {
  if (gradient_loop_ != nullptr) gradient_loop_->Stop();
}

absl::Status Client::Init() {
  RETURN_IF_ERROR(thread_.Init());
  if (device() == nullptr) return absl::OkStatus();
  gradient_loop_ = thread_.threads.Make();
  absl::Status used;
  gradient_loop_->Run([&] { used = device()->Use(); });
  return used;
}

absl::StatusOr<Step> Client::Join(std::span<const std::span<const float>> initial) {
  const bool after_rollback = rolled_back();
  if (after_rollback) {
    // Gradients of the step that the rollback has ended come before Join.
    if (gradient_loop_ != nullptr) gradient_loop_->Run([] {});
    thread_.step_is_partial = false;
    thread_.progress.Restart();
  }
  state_.WaitForWrite();
  const auto first = thread_.Await<absl::StatusOr<Step>>(
      [&](auto done) { thread_.core->Join(initial, std::move(done)); });
  if (first.ok()) {
    thread_.next = *first;
  } else if (after_rollback) {
    // Replaces the rollback, which can be followed only once.
    thread_.progress.OnFailure(first.status());
  }
  return first;
}

bool Client::rolled_back() const { return thread_.progress.rollback().has_value(); }

void Client::BeginStep(Step step, uint32_t examples, float scale, float rate_factor) {
  thread_.progress.BeginStep();
  thread_.loop->Post([=, this] { thread_.core->BeginStep(step, examples, scale, rate_factor); });
}

absl::Status Client::WaitTensor(uint32_t tensor) {
  return thread_.CountWait(WorkerCounters::kWaitParametersMicrosFieldNumber,
                           [&] { return thread_.progress.WaitTensor(tensor); });
}

absl::Status Client::WaitAll() {
  return thread_.CountWait(WorkerCounters::kWaitParametersMicrosFieldNumber,
                           [&] { return thread_.progress.WaitAll(); });
}

void Client::Ready(uint32_t tensor, std::span<const float> gradient,
                   std::shared_ptr<const void> owner) {
  thread_.step_is_partial = true;
  thread_.loop->Post([this, tensor, gradient, owner = std::move(owner)]() mutable {
    thread_.core->Ready(tensor, gradient, std::move(owner));
  });
}

void Client::Ready(uint32_t tensor, TensorGradient gradient) {
  if (gradient.wait == nullptr) return Ready(tensor, gradient.values, std::move(gradient.owner));
  thread_.step_is_partial = true;
  // Waits for the device on a separate event loop, because a wait on the core's would delay
  // messages from servers.
  gradient_loop_->Post([this, tensor, gradient = std::move(gradient)] {
    const absl::Status computed = gradient.wait();
    if (computed.ok()) return Ready(tensor, gradient.values, gradient.owner);
    thread_.loop->Post([this, computed] { thread_.core->Fail(computed); });
  });
}

absl::Status Client::EndStep() {
  return thread_.CountWait(WorkerCounters::kWaitPushesMicrosFieldNumber,
                           [&] { return thread_.progress.WaitEncoded(); });
}

absl::StatusOr<Step> Client::NextStep() {
  absl::StatusOr<Step> next;
  RETURN_IF_ERROR(thread_.CountWait(WorkerCounters::kWaitPushesMicrosFieldNumber, [&] {
    // The verdict may wait for pushes of workers that wait to know where this one stops.
    if (thread_.progress.WaitNextOrStop()) thread_.ReportStop(thread_.next + 1);
    next = thread_.progress.WaitNext();
    return next.status();
  }));
  thread_.next = *next;
  thread_.step_is_partial = !thread_.progress.judged();
  thread_.core->parts().worker_news.AskForEvaluator();
  return thread_.next;
}

absl::StatusOr<Step> Client::Settle() {
  RETURN_IF_ERROR(thread_.CountWait(WorkerCounters::kWaitPushesMicrosFieldNumber,
                                    [&] { return thread_.progress.WaitJudged(); }));
  std::optional<Step> next;
  thread_.loop->Run([&] { next = thread_.core->Settle(); });
  thread_.step_is_partial = false;
  if (next.has_value()) thread_.next = *next;
  return thread_.next;
}

void Client::Stop() {
  thread_.stop->Set();
  thread_.progress.Stop();
  thread_.loop->Post([this] { thread_.core->Stop(); });
}

absl::Status Client::Leave(const LeaveReason& reason) {
  const absl::Status failure = thread_.progress.failure();
  const absl::Duration patience = failure.ok() ? thread_.options.silence : absl::ZeroDuration();
  const auto left = thread_.Await<absl::Status>(
      [&](auto done) { thread_.core->Leave(reason, patience, std::move(done)); });
  return failure.ok() ? left : failure;
}

void Client::SetWaitCheck(std::function<bool()> goes_on) {
  thread_.progress.SetWaitCheck(std::move(goes_on));
}

void Client::Pause(absl::Duration duration) { thread_.stop->Wait(duration); }

std::span<float> Client::replica(uint32_t tensor) {
  return thread_.core->parts().replica.tensor(tensor);
}

std::string Client::waiting() const { return thread_.core->parts().report.waiting(); }
std::vector<GroupCodec> Client::choices() const { return thread_.core->parts().report.choices(); }
WorkerCounters Client::counters() const { return thread_.core->parts().report.counters(); }

}  // namespace thinwire

#include "server/site/site_relay.h"

#include <glog/logging.h>

#include <algorithm>
#include <span>
#include <utility>

#include "client/options/job_client_options.h"
#include "common/base/divide_up.h"
#include "common/base/status_macros.h"
#include "common/model/partition.h"

namespace thinwire {
namespace {

// Returns the number of steps of the whole run, as the sampler of a worker of the site counts them.
// JOIN is that of a worker.
uint64_t PlannedSteps(const SiteRelay::Options& options, const JoinRequest& join) {
  const Task& task = join.config().task();
  const uint64_t epochs = std::max<uint64_t>(task.epochs(), 1);
  const uint64_t of_step = std::max<uint64_t>(uint64_t{task.batch_size()} * task.accumulate(), 1);
  const uint64_t of_site = DivideUp(join.planned_examples() / epochs, options.job.rule.workers);
  return epochs * DivideUp(DivideUp(of_site, options.site_workers), of_step);
}

}  // namespace

SiteRelay::SiteRelay(Options options, Parts parts, ExecutorFactory& threads)
    : options_(std::move(options)),
      parts_(std::move(parts)),
      threads_(threads),
      loop_(threads.Make()) {}

SiteRelay::~SiteRelay() { Stop(); }

void SiteRelay::Pass(RelayedRound round, Done done) {
  loop_->Post([this, round = std::move(round), done = std::move(done)] { PassNow(round, done); });
}

void SiteRelay::Pause(const Departure& departure) {
  loop_->Post([this, departure] {
    Leave(departure);
    if (!departure.finished && departure.diverged.empty() && !retired_) return;
    loop_->PostAt(loop_->Now() + options_.job.lease, [this, departure] {
      if (client_ == nullptr) parts_.ended(departure);
    });
  });
}

void SiteRelay::Stop() {
  {
    absl::MutexLock lock(&mu_);
    stopped_ = true;
    if (stoppable_ != nullptr) stoppable_->Stop();
  }
  loop_->Run([this] { Leave({}); });
  loop_->Stop();
}

void SiteRelay::PassNow(const RelayedRound& round, const Done& done) {
  pushed_ = false;
  if (!round.first) {
    const absl::Status passing = parts_.passing(round.step + 1);
    if (!passing.ok()) return parts_.failed(passing);
  }
  absl::Status status = client_ == nullptr ? JoinAnew(round) : Push(round);
  while (!status.ok() && client_ != nullptr && client_->rolled_back()) {
    LOG(WARNING) << status.message();
    if (!pushed_ && round.examples > 0) {
      LOG(WARNING) << "the gradient of step " << round.step << " of the site is lost";
    }
    status = Join();
  }
  if (status.ok() && !round.first) status = parts_.passed();
  if (absl::IsCancelled(status)) {
    // The process ends. The site does not repeat a round that the servers have.
    if (pushed_ && parts_.passed().ok()) done(Replica());
    return;
  }
  if (!status.ok()) return parts_.failed(status);
  done(Replica());
  if (!retired_ && client_->members().retired()) {
    retired_ = true;
    LOG(INFO) << "an operator removed this site: its workers leave";
    parts_.retired();
  }
}

absl::Status SiteRelay::JoinAnew(const RelayedRound& round) {
  if (round.first) {
    initial_.clear();
    for (const std::span<const float> tensor : round.tensors) {
      initial_.emplace_back(tensor.begin(), tensor.end());
    }
  } else if (round.examples > 0) {
    LOG(WARNING) << "the gradient of step " << round.step
                 << " of the site is lost: all workers of the site were lost before it";
  }
  RETURN_IF_ERROR(MakeClient(round.join));
  return Join();
}

absl::Status SiteRelay::MakeClient(const JoinRequest& join) {
  ClientOptions options =
      MakeClientOptions(options_.job, {.worker = options_.worker,
                                       .planned_examples = join.planned_examples(),
                                       .planned_steps = PlannedSteps(options_, join),
                                       .state_dir = options_.state_dir});
  // The site's workers compute each gradient from the newest parameters that they can get.
  options.works_ahead = false;
  options.config = options_.config;
  if (join.config().has_task()) *options.config->mutable_task() = join.config().task();
  options.data_hash = join.data_hash();
  options.model_file_hash = join.model_file_hash();
  options.initial_hash = join.initial_hash();
  options.memory = options_.memory;
  std::vector<TensorShape> tensors;
  for (const auto& tensor : join.tensors()) {
    tensors.push_back(
        {.name = tensor.name(), .shape = {tensor.shape().begin(), tensor.shape().end()}});
  }
  transport_ = parts_.make_transport();
  ASSIGN_OR_RETURN(client_,
                   Client::Make(std::move(options), std::move(tensors), *transport_, threads_));
  absl::MutexLock lock(&mu_);
  stoppable_ = client_.get();
  if (stopped_) client_->Stop();
  return absl::OkStatus();
}

absl::Status SiteRelay::Join() {
  const std::vector<std::span<const float>> initial(initial_.begin(), initial_.end());
  ASSIGN_OR_RETURN(next_, client_->Join(initial));
  LOG(INFO) << "site " << options_.worker << " joined at step " << next_ << " of the upper job";
  if (const std::string& text = client_->state().restored(); !text.empty()) LOG(INFO) << text;
  RETURN_IF_ERROR(client_->state().Save());
  return client_->WaitAll();
}

absl::Status SiteRelay::Push(const RelayedRound& round) {
  if (client_->state().IsDue()) {
    // After an error, the next wait of the step returns it.
    const absl::Status started = client_->state().StartSave();
    if (!started.ok()) LOG(WARNING) << "state not saved: " << started.message();
  }
  client_->BeginStep(next_, round.examples, /*scale=*/1, static_cast<float>(round.rate_factor));
  for (uint32_t i = 0; i < round.tensors.size(); ++i) client_->Ready(i, round.tensors[i]);
  RETURN_IF_ERROR(client_->EndStep());
  ASSIGN_OR_RETURN(next_, client_->NextStep());
  pushed_ = true;
  return client_->WaitAll();
}

void SiteRelay::Leave(const Departure& departure) {
  if (client_ == nullptr) return;
  // A client that has failed has no state to save, and its failure was reported.
  if (const absl::Status saved = client_->state().Save(); !saved.ok()) {
    LOG(WARNING) << "state not saved: " << saved.message();
  }
  const absl::Status left = client_->Leave(
      {.finished = departure.finished, .failed = departure.failed, .diverged = departure.diverged});
  if (!left.ok()) LOG(WARNING) << "leaving the upper job: " << left.message();
  {
    absl::MutexLock lock(&mu_);
    stoppable_ = nullptr;
  }
  client_.reset();
  transport_.reset();
}

TensorValues SiteRelay::Replica() const {
  TensorValues tensors;
  for (uint32_t i = 0; i < initial_.size(); ++i) tensors.emplace_back(client_->replica(i));
  return tensors;
}

}  // namespace thinwire

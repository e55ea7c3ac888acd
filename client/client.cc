#include "client/client.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/codec_tuner.h"
#include "client/device.h"
#include "client/exchange.h"
#include "client/join_request.h"
#include "client/loop.h"
#include "client/membership.h"
#include "client/parameter_memory.h"
#include "client/push_encoder.h"
#include "client/rendezvous.h"
#include "client/replica.h"
#include "client/report.h"
#include "client/residual_file.h"
#include "client/residual_start.h"
#include "client/shard_encoder.h"
#include "client/starting_step.h"
#include "common/clock.h"

namespace thinwire {

namespace {

absl::Status CheckInitial(std::span<const TensorShape> tensors,
                          std::span<const std::span<const float>> initial) {
  if (initial.size() != tensors.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("initial: want ", tensors.size(), " tensors, got ", initial.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    if (initial[i].size() == tensors[i].value_count()) continue;
    return absl::InvalidArgumentError(absl::StrCat("initial ", tensors[i].name, ": want ",
                                                   tensors[i].value_count(), " values, got ",
                                                   initial[i].size()));
  }
  return absl::OkStatus();
}

}  // namespace

// The training thread's side. What the loop's side (exchange) works with is constant or has its own
// synchronization; the replica is written by the loop, and read by the trainer where the rendezvous
// says that it stands still.
class Client::State {
 public:
  State(ClientOptions options, Partition partition, Transport& transport, const Device* device)
      : options_(std::move(options)),
        partition_(std::move(partition)),
        transport_(transport),
        device_(device),
        rendezvous_(partition_) {}

  ~State() {
    if (loop_ == nullptr) return;
    loop_->Run([this] { exchange_->Stop(); });
    if (arrivals_ != nullptr) arrivals_->Stop();
    loop_->Stop();
  }

  absl::Status Init();
  absl::StatusOr<Step> Join(std::span<const std::span<const float>> initial);
  absl::StatusOr<Step> NextStep();
  absl::Status SaveResiduals();
  absl::Status Leave();
  void BeginStep(Step step, uint32_t examples, float scale);
  void Ready(uint32_t tensor, std::span<const float> gradient, std::shared_ptr<const void> owner);
  void Ready(uint32_t tensor, TensorGradient gradient);

  const Partition& partition() const { return partition_; }
  const Device* device() const { return device_; }
  client::Replica& replica() { return *replica_; }
  client::Rendezvous& rendezvous() { return rendezvous_; }
  const client::Report& report() const { return report_; }
  const std::string& residual_start() const { return residual_start_; }

 private:
  absl::Status MakeEncoder();
  absl::Status MakeReplica();
  client::ResidualOwner owner() const { return {.job = options_.job, .worker = options_.worker}; }
  // Nothing where there is no file.
  absl::StatusOr<std::optional<client::SavedResiduals>> ReadSaved() const;
  absl::Status StartResiduals(std::optional<client::SavedResiduals> saved,
                              std::span<const JoinReply> replies, Step first);

  const ClientOptions options_;
  const Partition partition_;
  Transport& transport_;
  const Device* const device_;  // null: the host's memory
  SteadyClock clock_;
  std::unique_ptr<client::Replica> replica_;
  client::Rendezvous rendezvous_;
  client::Report report_;
  std::unique_ptr<client::CodecTuner> tuner_;  // if the push codecs are chosen
  std::unique_ptr<client::PushEncoder> encoder_;
  std::shared_ptr<client::Loop> loop_;  // from Join on, as is what lives there
  // Waits for gradients that the device still computes. From Join on, if there is a device.
  std::unique_ptr<client::Loop> arrivals_;
  std::unique_ptr<client::Exchange> exchange_;
  Incarnation incarnation_;
  std::string residual_start_;
  Step next_;  // what Join or NextStep returned last
};

absl::Status Client::State::Init() {
  if (absl::Status s = CheckOptions(options_); !s.ok()) return s;
  if (absl::Status s = device_ == nullptr ? absl::OkStatus() : device_->Use(); !s.ok()) return s;
  if (absl::Status s = MakeEncoder(); !s.ok()) return s;
  return MakeReplica();
}

absl::Status Client::State::MakeEncoder() {
  if (options_.choose.has_value()) {
    auto tuner = client::CodecTuner::Make(partition_, options_, device_, clock_);
    if (!tuner.ok()) return tuner.status();
    tuner_ = *std::move(tuner);
    report_.set_choices(tuner_->choices());
  }
  std::unique_ptr<client::ShardEncoder> shards;  // null: of the host
  if (device_ != nullptr) {
    auto made = device_->MakeEncoder(partition_, options_);
    if (!made.ok()) return made.status();
    shards = *std::move(made);
  }
  auto encoder = client::PushEncoder::Make(partition_, options_, tuner_.get(), std::move(shards));
  if (!encoder.ok()) return encoder.status();
  encoder_ = *std::move(encoder);
  return absl::OkStatus();
}

absl::Status Client::State::MakeReplica() {
  if (device_ == nullptr) {
    replica_ = std::make_unique<client::Replica>(partition_, options_.memory);
    return absl::OkStatus();
  }
  auto memory = device_->MakeParameters(partition_);
  if (memory.ok()) replica_ = std::make_unique<client::Replica>(partition_, *std::move(memory));
  return memory.status();
}

absl::StatusOr<std::optional<client::SavedResiduals>> Client::State::ReadSaved() const {
  if (options_.residual_file.empty()) return std::nullopt;
  auto saved = client::ReadResiduals(options_.residual_file, owner(), partition_);
  if (absl::IsNotFound(saved.status())) return std::nullopt;
  return saved;
}

absl::Status Client::State::StartResiduals(std::optional<client::SavedResiduals> saved,
                                           std::span<const JoinReply> replies, Step first) {
  std::optional<Step> step;
  if (saved.has_value()) step = saved->step;
  client::ResidualStart start =
      client::StartResiduals(options_.residual_file, step, replies, first);
  residual_start_ = std::move(start.text);
  return start.restore ? encoder_->Restore(*std::move(saved)) : absl::OkStatus();
}

absl::StatusOr<Step> Client::State::Join(std::span<const std::span<const float>> initial) {
  if (loop_ != nullptr) return absl::FailedPreconditionError("a client joins once");
  if (absl::Status s = CheckInitial(partition_.tensors(), initial); !s.ok()) return s;
  absl::StatusOr<std::optional<client::SavedResiduals>> saved = ReadSaved();
  if (!saved.ok()) return saved.status();
  if (absl::Status s = replica_->Fill(initial); !s.ok()) return s;
  client::Membership membership(transport_, clock_, options_.silence);
  absl::StatusOr<std::vector<JoinReply>> replies =
      membership.JoinAll(client::MakeJoinRequest(options_, partition_));
  if (!replies.ok()) return replies.status();
  const Step first = client::StartingStep(*replies);
  incarnation_ = Incarnation{replies->front().incarnation()};
  if (absl::Status s = StartResiduals(*std::move(saved), *replies, first); !s.ok()) return s;
  next_ = first;
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) rendezvous_.Expect(ShardId{s});

  loop_ = std::make_shared<client::Loop>(clock_);
  exchange_ = std::make_unique<client::Exchange>(client::Exchange::Parts{.options = options_,
                                                                         .partition = partition_,
                                                                         .transport = transport_,
                                                                         .loop = loop_,
                                                                         .replica = *replica_,
                                                                         .encoder = *encoder_,
                                                                         .tuner = tuner_.get(),
                                                                         .rendezvous = rendezvous_,
                                                                         .report = report_},
                                                 *std::move(replies));
  if (device_ != nullptr) {
    absl::Status used;
    arrivals_ = std::make_unique<client::Loop>(clock_);
    loop_->Run([&] { used = device_->Use(); });
    if (used.ok()) arrivals_->Run([&] { used = device_->Use(); });
    if (!used.ok()) return used;
  }
  loop_->Post([this, first] { exchange_->Start(first); });
  return first;
}

absl::StatusOr<Step> Client::State::NextStep() {
  absl::StatusOr<Step> next = rendezvous_.WaitNext();
  if (next.ok()) next_ = *next;
  return next;
}

absl::Status Client::State::SaveResiduals() {
  if (options_.residual_file.empty()) return absl::OkStatus();
  bool puts_back = false;
  loop_->Run([&] { puts_back = exchange_->puts_back(); });
  if (absl::Status s = puts_back ? rendezvous_.WaitAll() : absl::OkStatus(); !s.ok()) return s;
  // Every verdict is in, and what is put back with the parameters of the next step: so the loop
  // leaves the encoder alone until that begins.
  absl::StatusOr<std::vector<client::ShardResidualsView>> residuals;
  loop_->Run([&] { residuals = encoder_->residuals(); });
  if (!residuals.ok()) return residuals.status();
  return client::WriteResiduals(options_.residual_file, owner(), partition_, next_, *residuals);
}

void Client::State::BeginStep(Step step, uint32_t examples, float scale) {
  rendezvous_.BeginStep();
  loop_->Post([=, this] { exchange_->BeginStep(step, examples, scale); });
}

void Client::State::Ready(uint32_t tensor, std::span<const float> gradient,
                          std::shared_ptr<const void> owner) {
  loop_->Post([this, tensor, gradient, owner = std::move(owner)]() mutable {
    exchange_->Ready(tensor, gradient, std::move(owner));
  });
}

void Client::State::Ready(uint32_t tensor, TensorGradient gradient) {
  if (gradient.wait == nullptr) return Ready(tensor, gradient.values, std::move(gradient.owner));
  // Else the loop would stand still until the device has come so far.
  arrivals_->Post([this, tensor, gradient = std::move(gradient)] {
    const absl::Status arrived = gradient.wait();
    if (arrived.ok()) return Ready(tensor, gradient.values, gradient.owner);
    loop_->Post([this, arrived] { exchange_->Fail(arrived); });
  });
}

absl::Status Client::State::Leave() {
  if (loop_ == nullptr) return absl::FailedPreconditionError("a client leaves after it has joined");
  std::optional<ServerId> lost;
  loop_->Run([this, &lost] {
    exchange_->Stop();
    lost = exchange_->lost();
  });
  const absl::Status failure = rendezvous_.failure();
  LeaveRequest request;
  request.set_worker(options_.worker.value);
  request.set_incarnation(incarnation_.value);
  client::Membership membership(transport_, clock_, options_.silence);
  const absl::Status left = membership.LeaveAll(options_.server_count, request, lost);
  return failure.ok() ? left : failure;
}

absl::StatusOr<std::unique_ptr<Client>> Client::Make(ClientOptions options,
                                                     std::vector<TensorShape> tensors,
                                                     Transport& transport, const Device* device) {
  absl::StatusOr<Partition> partition =
      Partition::Make(std::move(tensors), options.shard_size, options.server_count);
  if (!partition.ok()) return partition.status();
  auto state =
      std::make_unique<State>(std::move(options), *std::move(partition), transport, device);
  if (absl::Status s = state->Init(); !s.ok()) return s;
  return std::unique_ptr<Client>(new Client(std::move(state)));
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;

const Partition& Client::partition() const { return state_->partition(); }
const Device* Client::device() const { return state_->device(); }
std::span<float> Client::replica(uint32_t tensor) { return state_->replica().tensor(tensor); }
absl::StatusOr<Step> Client::Join(std::span<const std::span<const float>> initial) {
  return state_->Join(initial);
}
void Client::BeginStep(Step step, uint32_t examples, float scale) {
  state_->BeginStep(step, examples, scale);
}
absl::Status Client::WaitTensor(uint32_t tensor) { return state_->rendezvous().WaitTensor(tensor); }
absl::Status Client::WaitAll() { return state_->rendezvous().WaitAll(); }
void Client::Ready(uint32_t tensor, std::span<const float> gradient,
                   std::shared_ptr<const void> owner) {
  state_->Ready(tensor, gradient, std::move(owner));
}
void Client::Ready(uint32_t tensor, TensorGradient gradient) {
  state_->Ready(tensor, std::move(gradient));
}
absl::Status Client::EndStep() { return state_->rendezvous().WaitEncoded(); }
absl::StatusOr<Step> Client::NextStep() { return state_->NextStep(); }
absl::Status Client::SaveResiduals() const { return state_->SaveResiduals(); }
const std::string& Client::residual_start() const { return state_->residual_start(); }
absl::Status Client::Leave() { return state_->Leave(); }
std::vector<WorkerId> Client::live() const { return state_->report().live(); }
std::vector<GroupCodec> Client::choices() const { return state_->report().choices(); }
std::string Client::waiting() const { return state_->report().waiting(); }
WorkerCounters Client::counters() const { return state_->report().counters(); }

}  // namespace thinwire

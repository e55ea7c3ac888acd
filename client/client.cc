#include "client/client.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/exchange.h"
#include "client/loop.h"
#include "client/membership.h"
#include "client/push_encoder.h"
#include "client/rendezvous.h"
#include "client/replica.h"
#include "client/report.h"
#include "client/starting_step.h"
#include "common/clock.h"

namespace thinwire {

// The training thread's side. What the loop's side (exchange) works with is constant or has its own
// synchronization; the replica is written by the loop, and read by the trainer where the rendezvous
// says that it stands still.
class Client::State {
 public:
  State(ClientOptions options, Partition partition, Transport& transport)
      : options_(std::move(options)),
        partition_(std::move(partition)),
        transport_(transport),
        replica_(partition_),
        rendezvous_(partition_) {}

  ~State() {
    if (loop_ == nullptr) return;
    loop_->Run([this] { exchange_->Stop(); });
    loop_->Stop();
  }

  absl::Status Init();
  absl::StatusOr<Step> Join(std::span<const std::span<const float>> initial);
  absl::Status Leave();
  void BeginStep(Step step, uint32_t examples);
  void Ready(uint32_t tensor, std::span<const float> gradient, std::shared_ptr<const void> owner);

  const Partition& partition() const { return partition_; }
  client::Replica& replica() { return replica_; }
  client::Rendezvous& rendezvous() { return rendezvous_; }
  const client::Report& report() const { return report_; }

 private:
  absl::Status CheckInitial(std::span<const std::span<const float>> initial) const;
  JoinRequest MakeJoinRequest() const;

  const ClientOptions options_;
  const Partition partition_;
  Transport& transport_;
  SteadyClock clock_;
  client::Replica replica_;
  client::Rendezvous rendezvous_;
  client::Report report_;
  std::unique_ptr<client::PushEncoder> encoder_;
  std::shared_ptr<client::Loop> loop_;  // from Join on, as is what lives there
  std::unique_ptr<client::Exchange> exchange_;
  Incarnation incarnation_;
};

absl::Status Client::State::Init() {
  auto encoder = client::PushEncoder::Make(partition_, options_.push, options_.error_feedback,
                                           options_.worker);
  if (!encoder.ok()) return encoder.status();
  encoder_ = *std::move(encoder);
  if (!IsDense(options_.pull)) {
    return absl::InvalidArgumentError(
        absl::StrCat("pull: want a dense codec, got ", std::string(CodecName(options_.pull))));
  }
  if (options_.silence <= absl::ZeroDuration() ||
      options_.heartbeat_interval <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(
        absl::StrCat("silence and heartbeat_interval: want more than 0 s, got ",
                     absl::FormatDuration(options_.silence), " and ",
                     absl::FormatDuration(options_.heartbeat_interval)));
  }
  return absl::OkStatus();
}

absl::Status Client::State::CheckInitial(std::span<const std::span<const float>> initial) const {
  const std::vector<TensorShape>& tensors = partition_.tensors();
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

JoinRequest Client::State::MakeJoinRequest() const {
  JoinRequest request;
  request.set_job(options_.job);
  request.set_worker(options_.worker.value);
  for (const TensorShape& shape : partition_.tensors()) {
    Tensor* tensor = request.add_tensors();
    tensor->set_name(shape.name);
    for (const int64_t dimension : shape.shape) tensor->add_shape(dimension);
  }
  // As it was asked for, so that the servers compute the same one.
  request.set_shard_size(options_.shard_size);
  request.set_servers(options_.server_count);
  request.set_partition_hash(partition_.hash());
  request.set_planned_examples(options_.planned_examples);
  return request;
}

absl::StatusOr<Step> Client::State::Join(std::span<const std::span<const float>> initial) {
  if (loop_ != nullptr) return absl::FailedPreconditionError("a client joins once");
  if (absl::Status s = CheckInitial(initial); !s.ok()) return s;
  replica_.Fill(initial);
  client::Membership membership(transport_, clock_, options_.silence);
  absl::StatusOr<std::vector<JoinReply>> replies = membership.JoinAll(MakeJoinRequest());
  if (!replies.ok()) return replies.status();
  const Step first = client::StartingStep(*replies);
  incarnation_ = Incarnation{replies->front().incarnation()};
  for (uint32_t s = 0; s < partition_.shard_count(); ++s) rendezvous_.Expect(ShardId{s});

  loop_ = std::make_shared<client::Loop>(clock_);
  exchange_ = std::make_unique<client::Exchange>(client::Exchange::Parts{.options = options_,
                                                                         .partition = partition_,
                                                                         .transport = transport_,
                                                                         .loop = loop_,
                                                                         .replica = replica_,
                                                                         .encoder = *encoder_,
                                                                         .rendezvous = rendezvous_,
                                                                         .report = report_},
                                                 *std::move(replies));
  loop_->Post([this, first] { exchange_->Start(first); });
  return first;
}

void Client::State::BeginStep(Step step, uint32_t examples) {
  rendezvous_.BeginStep();
  loop_->Post([this, step, examples] { exchange_->BeginStep(step, examples); });
}

void Client::State::Ready(uint32_t tensor, std::span<const float> gradient,
                          std::shared_ptr<const void> owner) {
  loop_->Post([this, tensor, gradient, owner = std::move(owner)]() mutable {
    exchange_->Ready(tensor, gradient, std::move(owner));
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
                                                     Transport& transport) {
  absl::StatusOr<Partition> partition =
      Partition::Make(std::move(tensors), options.shard_size, options.server_count);
  if (!partition.ok()) return partition.status();
  auto state = std::make_unique<State>(std::move(options), *std::move(partition), transport);
  if (absl::Status s = state->Init(); !s.ok()) return s;
  return std::unique_ptr<Client>(new Client(std::move(state)));
}

Client::Client(std::unique_ptr<State> state) : state_(std::move(state)) {}
Client::~Client() = default;

const Partition& Client::partition() const { return state_->partition(); }
std::span<float> Client::replica(uint32_t tensor) { return state_->replica().tensor(tensor); }
absl::StatusOr<Step> Client::Join(std::span<const std::span<const float>> initial) {
  return state_->Join(initial);
}
void Client::BeginStep(Step step, uint32_t examples) { state_->BeginStep(step, examples); }
absl::Status Client::WaitTensor(uint32_t tensor) { return state_->rendezvous().WaitTensor(tensor); }
absl::Status Client::WaitAll() { return state_->rendezvous().WaitAll(); }
void Client::Ready(uint32_t tensor, std::span<const float> gradient,
                   std::shared_ptr<const void> owner) {
  state_->Ready(tensor, gradient, std::move(owner));
}
absl::Status Client::EndStep() { return state_->rendezvous().WaitEncoded(); }
absl::StatusOr<Step> Client::NextStep() { return state_->rendezvous().WaitNext(); }
absl::Status Client::Leave() { return state_->Leave(); }
std::vector<WorkerId> Client::live() const { return state_->report().live(); }
std::string Client::waiting() const { return state_->report().waiting(); }
ClientStatistics Client::statistics() const { return state_->report().statistics(); }

}  // namespace thinwire

#include "server/durable/log_record.h"

#include <glog/logging.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <bit>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "proto/deal_check.h"
#include "proto/frame.h"
#include "proto/parsed_bytes.h"
#include "server/core/read_form.h"

namespace thinwire {
namespace {

static_assert(std::endian::native == std::endian::little);

using Head = LogRecordHead;
using HeadLength = uint32_t;

template <typename... Parts>
absl::Status Damage(const Parts&... parts) {
  return absl::DataLossError(absl::StrCat(parts...));
}

// Encoding

template <typename Sent>
Head::Sender SenderOf(const Sent& event) {
  Head::Sender sender;
  sender.set_worker(event.worker.value);
  sender.set_incarnation(event.incarnation.value);
  return sender;
}

Head::ReadForm ReadFormOf(const ReadForm& form) {
  Head::ReadForm written;
  if (!form.published) {
    written.set_codec(static_cast<uint32_t>(form.codec));
  } else if (form.held.has_value()) {
    written.set_since_version(form.held->value);
  } else {
    written.set_published(true);
  }
  return written;
}

// Each Set function stores an event in the head of a shard's record.
void Set(const SeedEvent&, Head::Shard& shard) { shard.mutable_seed(); }
void Set(const JoinEvent& event, Head::Shard& shard) { *shard.mutable_join() = SenderOf(event); }
void Set(const ReadEvent& event, Head::Shard& shard) {
  Head::Read& read = *shard.mutable_read();
  *read.mutable_sender() = SenderOf(event);
  read.set_generation(event.generation.value);
  read.set_step(event.step.value);
  *read.mutable_form() = ReadFormOf(event.form);
}
void Set(const PushEvent& event, Head::Shard& shard) {
  Head::Push& push = *shard.mutable_push();
  *push.mutable_sender() = SenderOf(event);
  push.set_generation(event.generation.value);
  push.set_step(event.step.value);
  push.set_examples(event.examples);
  push.set_late_examples(event.late_examples);
  push.set_computed_version(event.computed_version.value);
  if (event.rate_factor != 1) push.set_rate_factor(event.rate_factor);
  *push.mutable_read_form() = ReadFormOf(event.read_form);
}
void Set(const ExpireEvent& event, Head::Shard& shard) {
  *shard.mutable_expire() = SenderOf(event);
}
void Set(const ReturnEvent& event, Head::Shard& shard) {
  *shard.mutable_return_() = SenderOf(event);
}
void Set(const OpenEvent&, Head::Shard& shard) { shard.mutable_open(); }
void Set(const LeaveEvent& event, Head::Shard& shard) { *shard.mutable_leave() = SenderOf(event); }
void Set(const RuleEvent& event, Head::Shard& shard) { *shard.mutable_rule() = RuleMessage(event); }
void Set(const ShutEvent&, Head::Shard& shard) { shard.mutable_shut(); }
void Set(const PlanEvent& event, Head::Shard& shard) {
  shard.mutable_plan()->set_examples(event.examples);
}
// MakeJob refuses an event log in a job whose updates another job makes.
void Set(const UpdateEvent& event, Head::Shard& /*shard*/) {
  LOG(FATAL) << "no event of a log: " << Event(event);
}
void Set(const SumEvent& event, Head::Shard& shard) {
  Head::Sum& sum = *shard.mutable_sum();
  sum.set_step(event.step.value);
  sum.set_update(event.sums.update);
  sum.set_masters(event.sums.masters);
}

void Set(const BeginRecord& record, Head& head) {
  Head::Run& run = *head.mutable_run();
  run.set_run(record.run.value);
  run.set_generation(record.generation.value);
  *run.mutable_join() = record.join;
  run.set_token_key(record.token_key);
}
void Set(const MemberRecord& record, Head& head) {
  Head::Member& member = *head.mutable_member();
  member.set_worker(record.worker.value);
  member.set_assigned(record.assigned.value);
  member.set_incarnation(record.incarnation.value);
  member.set_left(record.left);
}
void Set(const DealRecord& record, Head& head) { *head.mutable_deal() = record.deal; }
void Set(const LeadRecord& record, Head& head) { *head.mutable_lead() = LeadMessage(record); }
void Set(const ShardRecord& record, Head& head) {
  Head::Shard& shard = *head.mutable_shard();
  shard.set_shard(record.shard.value);
  std::visit([&](const auto& event) { Set(event, shard); }, record.event);
}

// Returns the payload of RECORD, or nullptr if it has none.
const CheckedPayload* PayloadOf(const LogRecord& record) {
  const auto* shard = std::get_if<ShardRecord>(&record);
  if (shard == nullptr) return nullptr;
  if (const auto* seed = std::get_if<SeedEvent>(&shard->event)) return &seed->payload;
  if (const auto* push = std::get_if<PushEvent>(&shard->event)) return &push->payload;
  return nullptr;
}

// Decoding

absl::Status CheckAtMost(absl::string_view field, uint64_t most, uint64_t got) {
  if (got <= most) return absl::OkStatus();
  return Damage(field, ": too large (expected at most ", most, ", got ", got, ")");
}

absl::StatusOr<WorkerId> WorkerOf(uint32_t worker, uint32_t worker_count) {
  if (worker < worker_count) return WorkerId{worker};
  return Damage("worker: does not exist (expected a worker below ", worker_count, ", got ", worker,
                ")");
}

absl::StatusOr<ReadForm> ReadFormOf(const Head::ReadForm& form) {
  switch (form.form_case()) {
    case Head::ReadForm::kCodec: {
      const absl::StatusOr<CodecId> codec = CodecIdFromWire(form.codec());
      if (!codec.ok()) return Damage("codec: ", codec.status().message());
      if (CarriesParameters(*codec)) return ReadForm(*codec);
      return Damage("codec: cannot carry parameters (expected a dense codec, got ",
                    std::string(CodecName(*codec)), ")");
    }
    case Head::ReadForm::kPublished:
      return ReadForm::Published();
    case Head::ReadForm::kSinceVersion:
      return ReadForm::Since(Version{form.since_version()});
    case Head::ReadForm::FORM_NOT_SET:
      break;
  }
  return Damage("read form: unknown or missing");
}

// Decodes the event of one shard's record.
class EventDecoder {
 public:
  EventDecoder(uint32_t worker_count, size_t value_count, ByteChain payload)
      : worker_count_(worker_count), value_count_(value_count), payload_(std::move(payload)) {}

  absl::StatusOr<Event> Decode(const Head::Shard& shard) {
    if (!shard.has_seed() && !shard.has_push()) RETURN_IF_ERROR(CheckNoPayload());
    switch (shard.event_case()) {
      case Head::Shard::kSeed:
        return DecodeSeed();
      case Head::Shard::kJoin:
        return DecodeSent<JoinEvent>(shard.join());
      case Head::Shard::kRead:
        return DecodeRead(shard.read());
      case Head::Shard::kPush:
        return DecodePush(shard.push());
      case Head::Shard::kExpire:
        return DecodeSent<ExpireEvent>(shard.expire());
      case Head::Shard::kReturn:
        return DecodeSent<ReturnEvent>(shard.return_());
      case Head::Shard::kOpen:
        return OpenEvent{};
      case Head::Shard::kLeave:
        return DecodeSent<LeaveEvent>(shard.leave());
      case Head::Shard::kRule:
        return DecodeRule(shard.rule());
      case Head::Shard::kShut:
        return ShutEvent{};
      case Head::Shard::kSum:
        return DecodeSum(shard.sum());
      case Head::Shard::kPlan:
        return PlanEvent{shard.plan().examples()};
      case Head::Shard::EVENT_NOT_SET:
        break;
    }
    return Damage("event: unknown or missing");
  }

 private:
  template <typename Sent>
  absl::StatusOr<Sent> DecodeSent(const Head::Sender& sender) const {
    ASSIGN_OR_RETURN(const WorkerId worker, WorkerOf(sender.worker(), worker_count_));
    return Sent{.worker = worker, .incarnation = {sender.incarnation()}};
  }

  absl::StatusOr<SeedEvent> DecodeSeed() {
    ASSIGN_OR_RETURN(CheckedPayload payload, Payload());
    if (PayloadCodec(payload) != CodecId::kFp32) {
      return Damage("seed: wrong codec (expected fp32, got ",
                    std::string(CodecName(PayloadCodec(payload))), ")");
    }
    if (!PayloadIsFinite(payload)) return Damage("seed: has a NaN or an infinity");
    return SeedEvent{std::move(payload)};
  }

  absl::StatusOr<ReadEvent> DecodeRead(const Head::Read& read) const {
    ASSIGN_OR_RETURN(ReadEvent event, DecodeSent<ReadEvent>(read.sender()));
    RETURN_IF_ERROR(CheckAtMost("step", kLargestStep.value, read.step()));
    ASSIGN_OR_RETURN(event.form, ReadFormOf(read.form()));
    event.generation = {read.generation()};
    event.step = {read.step()};
    return event;
  }

  absl::StatusOr<PushEvent> DecodePush(const Head::Push& push) {
    ASSIGN_OR_RETURN(PushEvent event, DecodeSent<PushEvent>(push.sender()));
    RETURN_IF_ERROR(CheckAtMost("step", kLargestStep.value, push.step()));
    RETURN_IF_ERROR(CheckAtMost("examples", kMostExamples, push.examples()));
    RETURN_IF_ERROR(CheckAtMost("late_examples", kMostExamples, push.late_examples()));
    ASSIGN_OR_RETURN(event.read_form, ReadFormOf(push.read_form()));
    event.generation = {push.generation()};
    event.step = {push.step()};
    event.examples = push.examples();
    event.late_examples = push.late_examples();
    event.computed_version = {push.computed_version()};
    if (push.has_rate_factor()) event.rate_factor = push.rate_factor();
    if (!IsRateFactor(event.rate_factor)) {
      return Damage("rate_factor: out of range (expected a finite number of at least 0, got ",
                    event.rate_factor, ")");
    }
    if (push.examples() == 0) {
      RETURN_IF_ERROR(CheckNoPayload());
    } else {
      ASSIGN_OR_RETURN(event.payload, Payload());
    }
    return event;
  }

  absl::StatusOr<RuleEvent> DecodeRule(const Head::Rule& message) const {
    const RuleEvent event = RuleOf(message, worker_count_);
    const Problems problems = event.rule.Validate();
    if (problems.empty()) return event;
    return Damage("rule: ", problems.list().front().field, ": ", problems.list().front().text);
  }

  absl::StatusOr<SumEvent> DecodeSum(const Head::Sum& sum) const {
    RETURN_IF_ERROR(CheckAtMost("step", kLargestStep.value, sum.step()));
    const SquareSums sums = {.update = sum.update(), .masters = sum.masters()};
    if (sums.valid()) return SumEvent{{sum.step()}, sums};
    return Damage("sums: out of range (expected at least 0, got ", sums.update, ", ", sums.masters,
                  ")");
  }

  absl::StatusOr<CheckedPayload> Payload() {
    auto payload = CheckPayload(std::move(payload_), value_count_);
    if (!payload.ok()) return Damage(payload.status().message());
    return payload;
  }

  absl::Status CheckNoPayload() const {
    if (payload_.empty()) return absl::OkStatus();
    return Damage("payload: not allowed (expected 0 bytes, got ", payload_.size(), ")");
  }

  const uint32_t worker_count_;
  const size_t value_count_;
  ByteChain payload_;
};

// Moves the strings out of RUN, because a Join may be large.
absl::StatusOr<BeginRecord> DecodeRun(Head::Run& run, uint32_t worker_count) {
  if (run.run() == 0) return Damage("run: missing");
  RETURN_IF_ERROR(WorkerOf(run.join().worker(), worker_count).status());
  return BeginRecord{.run = {run.run()},
                     .generation = {run.generation()},
                     .join = std::move(*run.mutable_join()),
                     .token_key = std::move(*run.mutable_token_key())};
}

absl::StatusOr<MemberRecord> DecodeMember(const Head::Member& member, uint32_t worker_count) {
  ASSIGN_OR_RETURN(const WorkerId worker, WorkerOf(member.worker(), worker_count));
  return MemberRecord{.worker = worker,
                      .assigned = {member.assigned()},
                      .incarnation = {member.incarnation()},
                      .left = member.left()};
}

absl::StatusOr<DealRecord> DecodeDeal(const Deal& deal, uint32_t worker_count) {
  const absl::Status valid = CheckDeal(deal, worker_count, 0);
  if (!valid.ok()) return Damage(valid.message());
  return DealRecord{deal};
}

absl::StatusOr<LeadRecord> DecodeLead(const Head::Lead& lead, uint32_t worker_count) {
  RETURN_IF_ERROR(CheckAtMost("target_workers", worker_count, lead.target_workers()));
  for (const Head::Sender& process : lead.drained()) {
    RETURN_IF_ERROR(WorkerOf(process.worker(), worker_count).status());
  }
  return LeadOf(lead);
}

absl::StatusOr<ShardRecord> DecodeShard(const Head::Shard& shard, uint32_t worker_count,
                                        const ValueCountOf& value_count, ByteChain payload) {
  const std::optional<size_t> count = value_count(ShardId{shard.shard()});
  if (!count.has_value()) return Damage("shard ", shard.shard(), ": not on this server");
  auto event = EventDecoder(worker_count, *count, std::move(payload)).Decode(shard);
  if (!event.ok()) return Damage("shard ", shard.shard(), ": ", event.status().message());
  return ShardRecord{.shard = {shard.shard()}, .event = *std::move(event)};
}

}  // namespace

LogRecordHead::Lead LeadMessage(const LeadRecord& record) {
  LogRecordHead::Lead message;
  for (const Epoch epoch : record.admitted) message.add_admitted_epochs(epoch.value);
  message.set_target_workers(record.target_workers);
  for (const auto& [worker, incarnation] : record.drained) {
    Head::Sender& process = *message.add_drained();
    process.set_worker(worker.value);
    process.set_incarnation(incarnation.value);
  }
  return message;
}

LeadRecord LeadOf(const LogRecordHead::Lead& message) {
  LeadRecord record = {.admitted = {}, .target_workers = message.target_workers()};
  for (const uint64_t epoch : message.admitted_epochs()) record.admitted.push_back(Epoch{epoch});
  for (const LogRecordHead::Sender& process : message.drained()) {
    record.drained.emplace_back(WorkerId{process.worker()}, Incarnation{process.incarnation()});
  }
  return record;
}

LogRecordHead::Rule RuleMessage(const RuleEvent& event) {
  const Rule& rule = event.rule;
  LogRecordHead::Rule message;
  message.set_by_push(rule.fold == Fold::kPush);
  message.set_workers(rule.workers);
  message.set_quorum(rule.quorum);
  message.set_slack(rule.slack);
  message.set_fold_every(rule.fold_every);
  message.set_ordered_fold(rule.ordered_fold);
  message.set_in_flight(rule.in_flight);
  message.set_from_step(event.from.value);
  return message;
}

RuleEvent RuleOf(const LogRecordHead::Rule& message, uint32_t max_workers) {
  return {.rule = {.fold = message.by_push() ? Fold::kPush : Fold::kRound,
                   .workers = message.workers(),
                   .max_workers = max_workers,
                   .quorum = message.quorum(),
                   .slack = message.slack(),
                   .fold_every = message.fold_every(),
                   .ordered_fold = message.ordered_fold(),
                   .in_flight = message.in_flight()},
          .from = {message.from_step()}};
}

ByteChain EncodeRecord(const LogRecord& record) {
  Head head;
  std::visit([&](const auto& alternative) { Set(alternative, head); }, record);
  const auto length = static_cast<HeadLength>(head.ByteSizeLong());
  std::vector<std::byte> bytes(sizeof(length) + length);
  std::memcpy(bytes.data(), &length, sizeof(length));
  head.SerializeWithCachedSizesToArray(reinterpret_cast<uint8_t*>(bytes.data() + sizeof(length)));
  ByteChain chain(std::move(bytes));
  if (const CheckedPayload* payload = PayloadOf(record)) chain.Append(payload->bytes());
  return chain;
}

absl::StatusOr<LogRecord> DecodeRecord(const ByteChain& bytes, uint32_t worker_count,
                                       const ValueCountOf& value_count) {
  HeadLength length = 0;
  if (bytes.size() < sizeof(length)) {
    return Damage("record: too short (expected at least ", sizeof(length), " bytes, got ",
                  bytes.size(), ")");
  }
  bytes.Sub(0, sizeof(length)).CopyTo(std::as_writable_bytes(std::span(&length, 1)));
  const size_t rest = bytes.size() - sizeof(length);
  if (length > rest || length > std::numeric_limits<int>::max()) {
    return Damage("head: longer than the record (expected at most ", rest, " bytes, got ", length,
                  ")");
  }
  std::vector<std::byte> scratch;
  const ByteChain head_bytes = bytes.Sub(sizeof(length), length);
  const std::span<const std::byte> contiguous = head_bytes.Contiguous(scratch);
  google::protobuf::io::ArrayInputStream unparsed(contiguous.data(), static_cast<int>(length));
  if (const absl::Status bounded = CheckParsedBytes(unparsed, *Head::descriptor()); !bounded.ok()) {
    return Damage("head: ", bounded.message());
  }
  Head head;
  if (!head.ParseFromArray(contiguous.data(), static_cast<int>(length))) {
    return Damage("head: not a LogRecordHead");
  }
  ByteChain payload = bytes.Sub(sizeof(length) + length, rest - length);
  if (!head.has_shard() && !payload.empty()) {
    return Damage("payload: not allowed (expected 0 bytes, got ", payload.size(), ")");
  }
  switch (head.record_case()) {
    case Head::kRun:
      return DecodeRun(*head.mutable_run(), worker_count);
    case Head::kMember:
      return DecodeMember(head.member(), worker_count);
    case Head::kDeal:
      return DecodeDeal(head.deal(), worker_count);
    case Head::kLead:
      return DecodeLead(head.lead(), worker_count);
    case Head::kShard:
      return DecodeShard(head.shard(), worker_count, value_count, std::move(payload));
    case Head::RECORD_NOT_SET:
      break;
  }
  return Damage("record: unknown or empty");
}

}  // namespace thinwire

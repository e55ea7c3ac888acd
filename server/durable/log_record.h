// LogRecord is one entry of a server's event log: an event of a shard, or a change of the server's
// own state. Replaying the records in order recreates the state (docs/recovery.md).
//
//   record = length of the head (4 bytes, little-endian) | head (LogRecordHead, proto/state.proto) |
//            payload of a seed or push
//
// The payload is not part of the protobuf, so it is written from the memory in which it arrived.
#ifndef THINWIRE_SERVER_DURABLE_LOG_RECORD_H_
#define THINWIRE_SERVER_DURABLE_LOG_RECORD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/memory/byte_chain.h"
#include "common/spec/rule.h"
#include "proto/control.pb.h"
#include "proto/state.pb.h"
#include "server/core/event.h"

namespace thinwire {

// The server belongs to RUN from now on, and the first worker's JOIN defines the model. JOIN is the
// request as the server received it. Replaces all earlier records.
struct BeginRecord {
  RunId run;
  Generation generation;
  JoinRequest join;
  std::string token_key;  // the key of the run's tokens, a secret; "": none
};

// The state of a worker's number after a change.
struct MemberRecord {
  WorkerId worker;
  Incarnation assigned;     // the newest incarnation that server 0 has assigned
  Incarnation incarnation;  // the newest one that joined this server; 0: none
  bool left = false;

  bool operator==(const MemberRecord&) const = default;
};

// At the lead: how the examples are dealt among the workers from a step on. CheckDeal
// (proto/deal_check.h) accepts DEAL as a first deal.
struct DealRecord {
  Deal deal;
};

// The decisions of the lead. Replaces the earlier record.
struct LeadRecord {
  // By server number: the epoch with which the server was admitted to the run; 0: not admitted yet.
  std::vector<Epoch> admitted;
  uint32_t target_workers = 0;  // a reduction to this number is not complete; 0: no reduction
  // The processes that an operator drains and that have not left.
  std::vector<std::pair<WorkerId, Incarnation>> drained = {};

  bool operator==(const LeadRecord&) const = default;
};

struct ShardRecord {
  ShardId shard;
  Event event;
};

using LogRecord = std::variant<BeginRecord, MemberRecord, DealRecord, LeadRecord, ShardRecord>;

// Returns the bytes of RECORD. A payload keeps its memory and its owners.
ByteChain EncodeRecord(const LogRecord& record);

// Returns the number of values of a shard, or nullopt if the server has no such shard.
using ValueCountOf = std::function<std::optional<size_t>(ShardId)>;

// Errors: DataLoss with the cause. A number in the record is never trusted: a payload is checked as
// if a peer had sent it, and every enum and every worker number below WORKER_COUNT.
absl::StatusOr<LogRecord> DecodeRecord(const ByteChain& bytes, uint32_t worker_count,
                                       const ValueCountOf& value_count);

// LeadMessage and LeadOf convert the decisions of the lead. The caller must check the numbers in
// the result of LeadOf.
LogRecordHead::Lead LeadMessage(const LeadRecord& record);
LeadRecord LeadOf(const LogRecordHead::Lead& message);

// RuleMessage and RuleOf convert a consistency rule and its first step. The message does not
// contain max_workers. The caller must validate the result of RuleOf.
LogRecordHead::Rule RuleMessage(const RuleEvent& event);
RuleEvent RuleOf(const LogRecordHead::Rule& message, uint32_t max_workers);

}  // namespace thinwire

#endif  // THINWIRE_SERVER_DURABLE_LOG_RECORD_H_

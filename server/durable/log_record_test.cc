#include "server/durable/log_record.h"

#include <cmath>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "common/codec/payload.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/state.pb.h"
#include "server/core/testing/fakes.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kWorkers = 4;
constexpr size_t kValues = 3;

// The server has the shards 0 and 7, with three values each.
std::optional<size_t> ValueCount(ShardId shard) {
  if (shard.value == 0 || shard.value == 7) return kValues;
  return std::nullopt;
}

absl::StatusOr<LogRecord> Decode(const ByteChain& bytes) {
  return DecodeRecord(bytes, kWorkers, ValueCount);
}

PushEvent Push() {
  PushEvent push = FakeWorker{.worker = {3}, .incarnation = {5}}.Push(9, 32, {1, -2, 3});
  push.generation = {6};
  push.late_examples = 8;
  push.computed_version = {12};
  push.read_form = CodecId::kBf16;
  push.rate_factor = 0.25f;
  return push;
}

BeginRecord SomeRun() {
  BeginRecord record = {
      .run = {0xABCDEF0123456789}, .generation = {2}, .join = {}, .token_key = "secret"};
  record.join.set_job("job");
  record.join.set_worker(1);
  record.join.set_incarnation(77);
  Tensor& tensor = *record.join.add_tensors();
  tensor.set_name("weights");
  tensor.add_shape(3);
  return record;
}

Rule SomeRule() {
  Rule rule = Rule::Ssp(3, 2, 5);
  rule.max_workers = kWorkers;
  return rule;
}

DealRecord SomeDeal() {
  DealRecord record;
  record.deal.set_step(70);
  record.deal.set_number(2);
  record.deal.add_members(0);
  record.deal.add_members(2);
  Deal::Departed& departed = *record.deal.add_departed();
  departed.set_worker(1);
  departed.set_next(66);
  return record;
}

// Returns one record of every kind, and a read and a push of every form.
std::vector<LogRecord> AllRecords() {
  const FakeWorker worker = {.worker = {2}, .incarnation = {4}};
  std::vector<LogRecord> records = {
      SomeRun(), MemberRecord{.worker = {3}, .assigned = {9}, .incarnation = {8}, .left = true},
      MemberRecord{}, SomeDeal()};
  PushEvent published = Push(), since = Push();
  published.read_form = ReadForm::Published();
  since.read_form = ReadForm::Since(Version{1});
  ReadEvent first_read = worker.Read(1);
  first_read.form = ReadForm::Since(Version{0});
  const std::vector<float> sparse = {0, 5, 0};
  PushEvent sparse_push = Push();
  sparse_push.payload = SparsePayload(sparse);
  for (const Event& event : std::vector<Event>{
           SeedEvent{Fp32Payload({1, 2, 3})}, worker.Join(), worker.Read(0), first_read, Push(),
           published, since, sparse_push, worker.PushNothing(3), worker.Expire(), worker.Return(),
           OpenEvent{}, worker.Leave(), RuleEvent{SomeRule()}, ShutEvent{},
           SumEvent{{9}, {.update = 0.25, .masters = 3}}, PlanEvent{300}}) {
    records.push_back(ShardRecord{.shard = {7}, .event = event});
  }
  return records;
}

TEST(LogRecord, SumsKeepTheirStepAndValues) {
  const SumEvent sum = {{9}, {.update = 0.1, .masters = 1e200}};
  const auto decoded = Decode(EncodeRecord(ShardRecord{.shard = {7}, .event = sum}));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<SumEvent>(std::get<ShardRecord>(*decoded).event), sum);
  for (const double value : {-0.5, HUGE_VAL, std::nan("")}) {
    for (const SquareSums& sums : {SquareSums{.update = value}, SquareSums{.masters = value}}) {
      const SumEvent wrong = {{9}, sums};
      EXPECT_EQ(Decode(EncodeRecord(ShardRecord{.shard = {7}, .event = wrong})).status().code(),
                absl::StatusCode::kDataLoss)
          << sums;
    }
  }
}

TEST(LogRecord, EveryRecordSurvivesARoundTrip) {
  int checked_count = 0;
  for (const LogRecord& record : AllRecords()) {
    const ByteChain bytes = EncodeRecord(record);
    const auto decoded = Decode(bytes);
    ASSERT_TRUE(decoded.ok()) << "record " << checked_count << ": " << decoded.status();
    EXPECT_EQ(decoded->index(), record.index());
    EXPECT_EQ(EncodeRecord(*decoded), bytes) << "record " << checked_count;
    ++checked_count;
  }
  EXPECT_EQ(checked_count, 21);
}

TEST(LogRecord, ARuleKeepsAllFields) {
  const RuleEvent rule = {SomeRule(), Step{9}};
  const auto decoded = Decode(EncodeRecord(ShardRecord{.shard = {7}, .event = rule}));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& event = std::get<ShardRecord>(*decoded).event;
  EXPECT_EQ(std::get<RuleEvent>(event), rule);
}

TEST(LogRecord, ARuleOfMoreWorkersThanTheJobMayHaveIsAnError) {
  Rule rule = SomeRule();
  rule.workers = kWorkers + 1;
  const auto decoded = Decode(EncodeRecord(ShardRecord{.shard = {7}, .event = RuleEvent{rule}}));
  EXPECT_TRUE(absl::IsDataLoss(decoded.status()));
  EXPECT_THAT(std::string(decoded.status().message()), HasSubstr("shard 7: rule: max_workers: "));
}

TEST(LogRecord, APushKeepsAllFields) {
  const PushEvent push = Push();
  const auto decoded = Decode(EncodeRecord(ShardRecord{.shard = {7}, .event = push}));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& record = std::get<ShardRecord>(*decoded);
  EXPECT_EQ(record.shard, ShardId{7});
  const auto& got = std::get<PushEvent>(record.event);
  EXPECT_EQ(got.worker, push.worker);
  EXPECT_EQ(got.incarnation, push.incarnation);
  EXPECT_EQ(got.generation, push.generation);
  EXPECT_EQ(got.step, push.step);
  EXPECT_EQ(got.examples, push.examples);
  EXPECT_EQ(got.late_examples, push.late_examples);
  EXPECT_EQ(got.computed_version, push.computed_version);
  EXPECT_EQ(got.read_form, push.read_form);
  EXPECT_EQ(got.payload, push.payload);
  EXPECT_EQ(got.rate_factor, push.rate_factor);
}

TEST(LogRecord, AReadKeepsAllFields) {
  const ReadEvent read = {.worker = {1},
                          .incarnation = {2},
                          .generation = {3},
                          .step = {4},
                          .form = ReadForm::Since(Version{5})};
  const auto decoded = Decode(EncodeRecord(ShardRecord{.shard = {}, .event = read}));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& got = std::get<ReadEvent>(std::get<ShardRecord>(*decoded).event);
  EXPECT_EQ(got.worker, read.worker);
  EXPECT_EQ(got.incarnation, read.incarnation);
  EXPECT_EQ(got.generation, read.generation);
  EXPECT_EQ(got.step, read.step);
  EXPECT_EQ(got.form, read.form);
}

TEST(LogRecord, ARunAndAMemberKeepAllFields) {
  const auto run = Decode(EncodeRecord(SomeRun()));
  ASSERT_TRUE(run.ok()) << run.status();
  EXPECT_EQ(std::get<BeginRecord>(*run).run, SomeRun().run);
  EXPECT_EQ(std::get<BeginRecord>(*run).generation, SomeRun().generation);
  EXPECT_EQ(std::get<BeginRecord>(*run).join.SerializeAsString(),
            SomeRun().join.SerializeAsString());
  EXPECT_EQ(std::get<BeginRecord>(*run).token_key, SomeRun().token_key);
  const MemberRecord member = {.worker = {3}, .assigned = {9}, .incarnation = {8}, .left = true};
  const auto decoded = Decode(EncodeRecord(member));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<MemberRecord>(*decoded), member);
}

TEST(LogRecord, ADealKeepsAllFields) {
  const auto decoded = Decode(EncodeRecord(SomeDeal()));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<DealRecord>(*decoded).deal.SerializeAsString(),
            SomeDeal().deal.SerializeAsString());
}

TEST(LogRecord, TheDecisionsOfTheLeadKeepAllFields) {
  const LeadRecord lead = {.admitted = {Epoch{}, Epoch{9}, Epoch{1ull << 63}},
                           .target_workers = kWorkers,
                           .drained = {{{3}, {8}}, {{0}, {1}}}};
  const auto decoded = Decode(EncodeRecord(lead));
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(std::get<LeadRecord>(*decoded), lead);
  const auto refused = Decode(EncodeRecord(LeadRecord{.admitted = {}, .target_workers = 5}));
  EXPECT_EQ(refused.status(),
            absl::DataLossError("target_workers: too large (expected at most 4, got 5)"));
  EXPECT_FALSE(Decode(EncodeRecord(LeadRecord{.drained = {{{kWorkers}, {1}}}})).ok());
}

TEST(LogRecord, NeitherDirectionCopiesAPayload) {
  const PushEvent push = Push();
  const ByteChain bytes = EncodeRecord(ShardRecord{.shard = {7}, .event = push});
  ASSERT_EQ(bytes.pieces().size(), 1 + push.payload.bytes().pieces().size());
  const std::byte* memory = push.payload.bytes().pieces()[0].bytes.data();
  EXPECT_EQ(bytes.pieces()[1].bytes.data(), memory);
  const auto decoded = Decode(bytes);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  const auto& got = std::get<PushEvent>(std::get<ShardRecord>(*decoded).event);
  EXPECT_EQ(got.payload.bytes().pieces()[0].bytes.data(), memory);
}

// Returns a record with HEAD and PAYLOAD.
ByteChain Bytes(const LogRecordHead& head, const ByteChain& payload = {}) {
  const std::string text = head.SerializeAsString();
  const auto length = static_cast<uint32_t>(text.size());
  std::vector<std::byte> bytes(sizeof(length) + text.size());
  std::memcpy(bytes.data(), &length, sizeof(length));
  std::memcpy(bytes.data() + sizeof(length), text.data(), text.size());
  ByteChain chain(std::move(bytes));
  chain.Append(payload);
  return chain;
}

LogRecordHead HeadOf(const LogRecord& record) {
  const std::vector<std::byte> bytes = EncodeRecord(record).ToVector();
  uint32_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof(length));
  LogRecordHead head;
  EXPECT_TRUE(head.ParseFromArray(bytes.data() + sizeof(length), static_cast<int>(length)));
  return head;
}

LogRecordHead HeadOf(const Event& event) { return HeadOf(ShardRecord{{7}, event}); }

void ExpectDamage(const ByteChain& bytes, const std::string& cause) {
  const absl::Status status = Decode(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << cause;
  EXPECT_THAT(std::string(status.message()), HasSubstr(cause));
}

TEST(LogRecord, AWrongFieldIsDataLossWithTheCause) {
  const ByteChain payload = Push().payload.bytes();
  const auto expect_push = [&](const std::function<void(LogRecordHead::Shard&)>& change,
                               const std::string& cause) {
    LogRecordHead head = HeadOf(Push());
    change(*head.mutable_shard());
    ExpectDamage(Bytes(head, payload), cause);
  };
  expect_push([](auto& shard) { shard.set_shard(6); }, "shard 6: not on this server");
  expect_push([](auto& shard) { shard.clear_event(); }, "shard 7: payload: not allowed");
  expect_push([](auto& shard) { shard.mutable_push()->mutable_sender()->set_worker(4); },
              "shard 7: worker: does not exist (expected a worker below 4, got 4)");
  expect_push([](auto& shard) { shard.mutable_push()->set_step((1ull << 62) + 1); },
              "step: too large");
  expect_push([](auto& shard) { shard.mutable_push()->set_examples((1u << 30) + 1); },
              "examples: too large (expected at most 1073741824, got 1073741825)");
  expect_push([](auto& shard) { shard.mutable_push()->set_late_examples(1u << 31); },
              "late_examples: too large");
  expect_push([](auto& shard) { shard.mutable_push()->set_rate_factor(-1); },
              "rate_factor: out of range (expected a finite number of at least 0, got -1)");
  expect_push([](auto& shard) { shard.mutable_push()->set_examples(0); },
              "payload: not allowed (expected 0 bytes, got 13)");
  expect_push([](auto& shard) { shard.mutable_push()->clear_read_form(); },
              "read form: unknown or missing");
  expect_push([](auto& shard) { shard.mutable_push()->mutable_read_form()->set_codec(6); },
              "codec: cannot carry parameters (expected a dense codec, got topk)");
  expect_push([](auto& shard) { shard.mutable_push()->mutable_read_form()->set_codec(200); },
              "codec: ");
  expect_push([](auto& shard) { shard.mutable_join(); }, "payload: not allowed");
}

TEST(LogRecord, AWrongPayloadIsDataLossWithTheCause) {
  const LogRecordHead push = HeadOf(Push());
  ExpectDamage(Bytes(push), "shard 7: payload: no bytes");
  ExpectDamage(Bytes(push, Push().payload.bytes().Sub(0, 12)), "wrong length");
  ExpectDamage(Bytes(push, Fp32Payload({1, 2}).bytes()), "wrong length");
  const LogRecordHead seed = HeadOf(SeedEvent{Fp32Payload({1, 2, 3})});
  const std::vector<float> values = {0, 5, 0};
  ExpectDamage(Bytes(seed, SparsePayload(values).bytes()),
               "seed: wrong codec (expected fp32, got topk)");
  ExpectDamage(Bytes(seed, Fp32Payload({1, NAN, 3}).bytes()), "seed: has a NaN or an infinity");
}

TEST(LogRecord, AWrongHeadIsDataLossWithTheCause) {
  ExpectDamage(ByteChain(), "record: too short (expected at least 4 bytes, got 0)");
  ExpectDamage(ByteChain(std::vector<std::byte>(3)), "record: too short");
  ExpectDamage(ByteChain(std::vector<std::byte>(5, std::byte{0xFF})),
               "head: longer than the record (expected at most 1 bytes, got 4294967295)");
  ExpectDamage(ByteChain(std::vector<std::byte>(4)), "record: unknown or empty");
  ExpectDamage(
      ByteChain(std::vector<std::byte>{std::byte{2}, {}, {}, {}, std::byte{0x0A}, std::byte{0x7F}}),
      "head: not a LogRecordHead");
  LogRecordHead head = HeadOf(LogRecord(SomeRun()));
  ExpectDamage(Bytes(head, ByteChain(std::vector<std::byte>(1))), "payload: not allowed");
  head.mutable_run()->set_run(0);
  ExpectDamage(Bytes(head), "run: missing");
  head = HeadOf(LogRecord(SomeRun()));
  head.mutable_run()->mutable_join()->set_worker(kWorkers);
  ExpectDamage(Bytes(head), "worker: does not exist");
  head = HeadOf(LogRecord(MemberRecord{.worker = {kWorkers}}));
  ExpectDamage(Bytes(head), "worker: does not exist");
  head = HeadOf(LogRecord(SomeDeal()));
  head.mutable_deal()->add_members(kWorkers);
  ExpectDamage(Bytes(head),
               "deal: members: not ascending or out of range (expected 3 to 3, got 4)");
  head.mutable_shard()->set_shard(7);
  ExpectDamage(Bytes(head), "shard 7: event: unknown or missing");
}

TEST(LogRecord, DamagedBytesAreDecodedOrDataLoss) {
  std::mt19937 random(1);
  int decoded_count = 0, damaged_count = 0;
  for (const LogRecord& record : AllRecords()) {
    const std::vector<std::byte> original = EncodeRecord(record).ToVector();
    for (int round = 0; round < 1000; ++round) {
      std::vector<std::byte> bytes = original;
      for (int i = 0; i <= round % 3; ++i) {
        bytes[random() % bytes.size()] = static_cast<std::byte>(random());
      }
      if (round % 7 == 0) bytes.resize(random() % (bytes.size() + 1));
      const auto decoded = Decode(ByteChain(bytes));
      if (decoded.ok()) {
        ++decoded_count;
        ASSERT_TRUE(Decode(EncodeRecord(*decoded)).ok());
      } else {
        ++damaged_count;
        ASSERT_EQ(decoded.status().code(), absl::StatusCode::kDataLoss) << decoded.status();
      }
    }
  }
  EXPECT_GT(decoded_count, 1000);
  EXPECT_GT(damaged_count, 1000);
}

}  // namespace
}  // namespace thinwire

#include "proto/frame.h"

#include <concepts>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "proto/wire_format.h"

namespace thinwire {
namespace {

// True if T is the type Plain or const Plain. An EachField function with this concept accepts a
// mutable object, into which a message is parsed, and a const object, which is written as a
// message.
template <typename T, typename Plain>
concept Is = std::same_as<std::remove_const_t<T>, Plain>;

// Each EachField function calls visit(number, field) for every field of an entry or a frame. NUMBER
// is the field number in parameter_service.proto. A float is a factor: its field is absent if it is 1.
void EachField(auto& visit, Is<SeedEntry> auto& seed) {
  visit(1, seed.shard.value);
  visit(15, seed.payload);
}

void EachField(auto& visit, Is<PushEntry> auto& push) {
  visit(1, push.shard.value);
  visit(2, push.step.value);
  visit(3, push.examples);
  visit(4, push.late_examples);
  visit(5, push.computed_version.value);
  visit(6, push.held_version.value);
  visit(7, push.read_codec);
  visit(8, push.rate_factor);
  visit(9, push.follows);
  visit(15, push.payload);
}

void EachField(auto& visit, Is<ReadEntry> auto& read) {
  visit(1, read.shard.value);
  visit(2, read.step.value);
  visit(3, read.held_version.value);
  visit(4, read.read_codec);
  visit(5, read.follows);
}

void EachField(auto& visit, Is<VerdictEntry> auto& verdict) {
  visit(1, verdict.shard.value);
  visit(2, verdict.step.value);
  visit(3, verdict.kind);
  visit(4, verdict.again);
  visit(5, verdict.frontier.value);
  visit(6, verdict.version.value);
}

void EachField(auto& visit, Is<ParametersEntry> auto& parameters) {
  visit(1, parameters.shard.value);
  visit(2, parameters.step.value);
  visit(3, parameters.version.value);
  visit(4, parameters.base_version.value);
  visit(5, parameters.kind);
  visit(6, parameters.frontier.value);
  visit(7, parameters.more);
  visit(8, parameters.published_hash);
  visit(9, parameters.selected);
  visit(10, parameters.steps_ahead);
  visit(11, parameters.holds_pushes);
  visit(15, parameters.payload);
}

void EachField(auto& visit, Is<WaitingEntry> auto& waiting) {
  visit(1, waiting.shard.value);
  visit(2, waiting.step.value);
  visit(3, waiting.frontier.value);
  visit(4, waiting.workers);
  visit(5, waiting.unseeded);
  visit(6, waiting.live);
  visit(7, waiting.wanted);
  visit(8, waiting.seed);
}

void EachField(auto& visit, Is<WorkerFrame> auto& frame) {
  visit(1, frame.worker.value);
  visit(2, frame.incarnation.value);
  visit(3, frame.generation.value);
  visit(4, frame.epoch.value);
  visit(5, frame.seeds);
  visit(6, frame.pushes);
  visit(7, frame.reads);
  visit(8, frame.member);
}

void EachField(auto& visit, Is<ServerFrame> auto& frame) {
  visit(1, frame.generation.value);
  visit(2, frame.epoch.value);
  visit(3, frame.verdicts);
  visit(4, frame.parameters);
  visit(5, frame.waits);
}

// Parses the fields of a message. A field with a known number but an unexpected wire type is
// skipped like an unknown field.
class FieldReader {
 public:
  // The frame may contain MOST_ENTRIES entries. ENTRIES_LEFT is the number of entries that it may
  // still contain; all readers of a frame decrement the same variable.
  FieldReader(WireReader& reader, size_t most_entries, size_t& entries_left)
      : reader_(reader), most_entries_(most_entries), entries_left_(entries_left) {}

  template <typename Message>
  void ReadAll(Message& message) {
    while (reader_.NextTag(&tag_)) {
      matched_ = false;
      EachField(*this, message);
      if (!matched_) reader_.Skip(tag_);
    }
  }

  template <std::unsigned_integral T>
  void operator()(uint32_t field, T& value) {
    if (Matches(VarintTag(field))) value = static_cast<T>(reader_.Varint());
  }
  void operator()(uint32_t field, bool& value) {
    if (Matches(VarintTag(field))) value = reader_.Varint() != 0;
  }
  void operator()(uint32_t field, float& factor) {
    if (Matches(FloatTag(field))) factor = reader_.Float();
  }
  void operator()(uint32_t field, ByteChain& value) {
    if (Matches(BytesTag(field))) value = reader_.Bytes();
  }
  void operator()(uint32_t field, std::vector<WorkerId>& workers) {
    if (Matches(VarintTag(field))) workers.push_back({static_cast<uint32_t>(reader_.Varint())});
    if (!Matches(BytesTag(field))) return;
    const size_t outer_end = reader_.Enter();
    while (reader_.status().ok() && reader_.position() < reader_.end()) {
      workers.push_back({static_cast<uint32_t>(reader_.Varint())});
    }
    reader_.Leave(outer_end);
  }
  template <typename Entry>
  void operator()(uint32_t field, std::vector<Entry>& entries) {
    if (!Matches(BytesTag(field))) return;
    if (entries_left_ == 0)
      return reader_.Fail(absl::StrCat("too many entries (expected at most ", most_entries_, ")"));
    --entries_left_;
    const size_t outer_end = reader_.Enter();
    FieldReader(reader_, most_entries_, entries_left_).ReadAll(entries.emplace_back());
    reader_.Leave(outer_end);
  }

 private:
  bool Matches(uint32_t tag) {
    if (matched_ || tag != tag_) return false;
    matched_ = true;
    return true;
  }

  WireReader& reader_;
  const size_t most_entries_;
  size_t& entries_left_;
  uint32_t tag_ = 0;
  bool matched_ = false;
};

class FieldWriter {
 public:
  explicit FieldWriter(WireWriter& writer) : writer_(writer) {}

  void operator()(uint32_t field, std::unsigned_integral auto value) {
    writer_.Varint(field, value);
  }
  void operator()(uint32_t field, float factor) {
    if (factor != 1) writer_.Float(field, factor);
  }
  void operator()(uint32_t field, const ByteChain& payload) { writer_.Payload(field, payload); }
  void operator()(uint32_t field, const std::vector<WorkerId>& workers) {
    std::vector<uint32_t> values;
    for (WorkerId worker : workers) values.push_back(worker.value);
    writer_.PackedVarints(field, values);
  }
  template <typename Entry>
  void operator()(uint32_t field, const std::vector<Entry>& entries) {
    WireWriter one;
    FieldWriter out(one);
    for (const Entry& entry : entries) {
      one.Clear();
      EachField(out, entry);
      writer_.Message(field, one);
    }
  }

 private:
  WireWriter& writer_;
};

template <typename Frame>
absl::StatusOr<Frame> Parse(const ByteChain& bytes, size_t most_entries) {
  WireReader reader(bytes);
  size_t entries_left = most_entries;
  Frame frame;
  FieldReader(reader, most_entries, entries_left).ReadAll(frame);
  if (!reader.status().ok()) return reader.status();
  return frame;
}

template <typename Frame>
ByteChain Write(const Frame& frame) {
  WireWriter writer;
  FieldWriter out(writer);
  EachField(out, frame);
  return std::move(writer).Finish();
}

}  // namespace

absl::StatusOr<WorkerFrame> ParseWorkerFrame(const ByteChain& bytes, size_t most_entries) {
  return Parse<WorkerFrame>(bytes, most_entries);
}
absl::StatusOr<ServerFrame> ParseServerFrame(const ByteChain& bytes) {
  return Parse<ServerFrame>(bytes, kMostEntries);
}

ByteChain WriteFrame(const WorkerFrame& frame) { return Write(frame); }
ByteChain WriteFrame(const ServerFrame& frame) { return Write(frame); }

}  // namespace thinwire

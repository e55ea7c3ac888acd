#include "server/durable/checkpoint_format.h"

#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/status_macros.h"
#include "common/codec/codec.h"
#include "common/files/crc32c.h"
#include "common/files/safetensors.h"
#include "common/memory/array_bytes.h"
#include "kernels/finite.h"
#include "proto/deal_check.h"

namespace thinwire {
namespace {

constexpr uint32_t kFormat = 1;

// Lists and objects of a manifest are nested less deeply.
constexpr int kMostLevels = 32;

absl::Status OutOfRange(const std::string& field, uint64_t value) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": out of range (got ", value, ")"));
}

CheckpointManifest::Worker WorkerEntry(const WorkerRecord& record) {
  CheckpointManifest::Worker entry;
  entry.set_incarnation(record.incarnation.value);
  entry.set_expired(record.expired);
  entry.set_left(record.left);
  entry.set_next(record.next.value);
  if (record.read.has_value()) entry.set_read(record.read->value);
  if (record.last_push.has_value()) {
    entry.set_last_push_step(record.last_push->step.value);
    entry.set_last_push_verdict(static_cast<uint32_t>(record.last_push->verdict));
    entry.set_earlier_verdicts(record.last_push->earlier);
  }
  if (record.allowed.has_value()) entry.set_allowed(record.allowed->value);
  if (record.waiting.has_value()) {
    const ReadForm& form = record.waiting->form;
    CheckpointManifest::WaitingRead& waiting = *entry.mutable_waiting();
    waiting.set_step(record.waiting->step.value);
    waiting.set_published(form.published);
    waiting.set_read_codec(static_cast<uint32_t>(form.codec));
    if (form.held.has_value()) waiting.set_held(form.held->value);
  }
  return entry;
}

absl::StatusOr<ReadForm> FormOf(const CheckpointManifest::WaitingRead& entry) {
  ReadForm form;
  form.published = entry.published();
  if (entry.read_codec() > 0xFF || !IsDense(static_cast<CodecId>(entry.read_codec()))) {
    return OutOfRange("read_codec", entry.read_codec());
  }
  form.codec = static_cast<CodecId>(entry.read_codec());
  if (entry.has_held()) form.held = Version{entry.held()};
  return form;
}

absl::StatusOr<WorkerRecord> WorkerRecordOf(const CheckpointManifest::Worker& entry) {
  WorkerRecord record = {.incarnation = Incarnation{entry.incarnation()},
                         .expired = entry.expired(),
                         .left = entry.left(),
                         .next = Step{entry.next()}};
  if (entry.has_read()) record.read = Step{entry.read()};
  if (entry.has_last_push_step()) {
    const uint32_t verdict = entry.last_push_verdict();
    if (verdict < static_cast<uint32_t>(Verdict::kAccept) ||
        verdict > static_cast<uint32_t>(Verdict::kRefused)) {
      return OutOfRange("last_push_verdict", verdict);
    }
    record.last_push = JudgedPush{Step{entry.last_push_step()}, static_cast<Verdict>(verdict),
                                  entry.earlier_verdicts()};
  }
  if (entry.has_allowed()) record.allowed = Step{entry.allowed()};
  if (entry.has_waiting()) {
    ASSIGN_OR_RETURN(const ReadForm form, FormOf(entry.waiting()));
    record.waiting = WaitingRead{Step{entry.waiting().step()}, form};
  }
  return record;
}

CheckpointManifest::Shard ShardEntry(const SavedShard& saved) {
  const ShardSnapshot& state = saved.state;
  CheckpointManifest::Shard entry;
  entry.set_shard(saved.shard.value);
  entry.set_values(state.store.masters.size() / sizeof(float));
  entry.set_applied_record(saved.applied);
  entry.set_open(state.open);
  entry.set_start_timed_out(state.start_timed_out);
  entry.set_frontier(state.frontier.value);
  entry.set_version(state.store.version.value);
  entry.set_examples(state.store.examples);
  if (state.store.planned_examples.has_value()) {
    entry.set_planned_examples(*state.store.planned_examples);
  }
  entry.set_saturated(state.store.saturated);
  entry.set_saturated_updates(state.store.saturated_updates);
  if (state.published.has_value()) {
    entry.mutable_published()->set_version(state.published->version.value);
    entry.mutable_published()->set_publish_count(state.published->publish_count);
  }
  if (state.rule.has_value()) *entry.mutable_rule() = RuleMessage({*state.rule});
  if (state.next_rule.has_value()) *entry.mutable_next_rule() = RuleMessage(*state.next_rule);
  for (const WorkerRecord& record : state.workers) *entry.add_workers() = WorkerEntry(record);
  return entry;
}

absl::StatusOr<SavedShard> SavedShardOf(const CheckpointManifest::Shard& entry) {
  SavedShard saved = {.shard = ShardId{entry.shard()}, .applied = entry.applied_record()};
  ShardSnapshot& state = saved.state;
  state.open = entry.open();
  state.start_timed_out = entry.start_timed_out();
  state.frontier = Step{entry.frontier()};
  state.store.version = Version{entry.version()};
  state.store.examples = entry.examples();
  if (entry.has_planned_examples()) state.store.planned_examples = entry.planned_examples();
  state.store.saturated = entry.saturated();
  state.store.saturated_updates = entry.saturated_updates();
  if (entry.has_published()) {
    state.published = {.version = Version{entry.published().version()},
                       .publish_count = entry.published().publish_count()};
  }
  for (const CheckpointManifest::Worker& worker : entry.workers()) {
    ASSIGN_OR_RETURN(WorkerRecord record, WorkerRecordOf(worker));
    state.workers.push_back(std::move(record));
  }
  const auto max_workers = static_cast<uint32_t>(state.workers.size());
  if (entry.has_rule()) state.rule = RuleOf(entry.rule(), max_workers).rule;
  if (entry.has_next_rule()) state.next_rule = RuleOf(entry.next_rule(), max_workers);
  return saved;
}

// Returns whether lists and objects of TEXT are nested deeper than kMostLevels. For each level of a
// list, protobuf's parser takes about 300 bytes, and it has no limit of the levels.
bool IsTooDeep(const std::string& text) {
  int levels = 0;
  char quote = 0;  // the quotation mark that ends the current string; 0: outside of strings
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quote != 0) {
      if (c == '\\') ++i;
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '[' || c == '{') {
      if (++levels > kMostLevels) return true;
    } else if (c == ']' || c == '}') {
      --levels;
    }
  }
  return false;
}

// An array of a shard as a tensor of its file.
struct NamedArray {
  std::string name;
  std::string dtype;
  ByteChain bytes;
};

// Returns the arrays of STATE that are not empty, in the order of the file.
std::vector<NamedArray> ArraysOf(const ShardSnapshot& state) {
  const UpdaterSnapshot& updater = state.store.updater;
  std::vector<NamedArray> arrays = {{"masters", "F32", state.store.masters}};
  for (size_t i = 0; i < updater.slots.size(); ++i) {
    arrays.push_back({absl::StrCat("slot_", i), "F32", updater.slots[i]});
  }
  arrays.push_back({"average", "F32", updater.average});
  arrays.push_back({"last", "U32", updater.last});
  arrays.push_back({"remainder", "F32", updater.remainder});
  arrays.push_back({"selected_list", "U8", updater.selected_list});
  if (state.published.has_value()) arrays.push_back({"published", "F32", state.published->values});
  arrays.push_back({"mean_squares", "F32", state.mean_squares});
  std::erase_if(arrays, [](const NamedArray& array) { return array.bytes.empty(); });
  return arrays;
}

uint64_t ValueBytes(const std::string& dtype) { return dtype == "U8" ? 1 : 4; }

}  // namespace

std::optional<Step> CommonFrontier(const std::vector<SavedShard>& shards) {
  if (shards.empty()) return std::nullopt;
  const Step first = shards.front().state.frontier;
  const bool equal = std::ranges::all_of(
      shards, [first](const SavedShard& saved) { return saved.state.frontier == first; });
  return equal ? std::optional(first) : std::nullopt;
}

bool IsHealthy(const ShardSnapshot& snapshot) {
  if (snapshot.store.saturated) return false;
  std::array<float, 4096> block;
  const ByteChain& masters = snapshot.store.masters;
  for (size_t at = 0; at < masters.size(); at += sizeof(block)) {
    const size_t bytes = std::min(sizeof(block), masters.size() - at);
    const auto values = std::span(block).first(bytes / sizeof(float));
    masters.Sub(at, values.size_bytes()).CopyTo(std::as_writable_bytes(values));
    if (!kernels::AllFinite(values)) return false;
  }
  return true;
}

CheckpointManifest ManifestOf(const Checkpoint& checkpoint) {
  CheckpointManifest manifest;
  manifest.set_format(kFormat);
  manifest.set_server(checkpoint.server.value);
  manifest.set_run(checkpoint.run.run.value);
  manifest.set_generation(checkpoint.run.generation.value);
  manifest.set_next_record(checkpoint.next);
  manifest.set_healthy(std::ranges::all_of(
      checkpoint.shards, [](const SavedShard& saved) { return IsHealthy(saved.state); }));
  *manifest.mutable_join() = checkpoint.run.join;
  for (const MemberRecord& record : checkpoint.members) {
    CheckpointManifest::Member& member = *manifest.add_members();
    member.set_worker(record.worker.value);
    member.set_assigned(record.assigned.value);
    member.set_incarnation(record.incarnation.value);
    member.set_left(record.left);
  }
  for (const SavedShard& saved : checkpoint.shards) *manifest.add_shards() = ShardEntry(saved);
  manifest.mutable_deals()->Assign(checkpoint.deals.begin(), checkpoint.deals.end());
  if (checkpoint.lead.has_value()) *manifest.mutable_lead() = LeadMessage(*checkpoint.lead);
  if (checkpoint.step.has_value()) manifest.set_step(checkpoint.step->value);
  manifest.set_token_key(checkpoint.run.token_key);
  if (checkpoint.test.has_value()) *manifest.mutable_test() = MessageOf(*checkpoint.test);
  return manifest;
}

absl::StatusOr<Checkpoint> CheckpointOf(const CheckpointManifest& manifest) {
  Checkpoint checkpoint;
  checkpoint.server = ServerId{manifest.server()};
  checkpoint.run = {.run = RunId{manifest.run()},
                    .generation = Generation{manifest.generation()},
                    .join = manifest.join(),
                    .token_key = manifest.token_key()};
  checkpoint.next = manifest.next_record();
  if (manifest.has_step()) checkpoint.step = Step{manifest.step()};
  checkpoint.test = TestResultOf(manifest.test());
  for (const CheckpointManifest::Member& member : manifest.members()) {
    if (!checkpoint.members.empty() && member.worker() <= checkpoint.members.back().worker.value) {
      return OutOfRange("members: worker", member.worker());
    }
    checkpoint.members.push_back({.worker = WorkerId{member.worker()},
                                  .assigned = Incarnation{member.assigned()},
                                  .incarnation = Incarnation{member.incarnation()},
                                  .left = member.left()});
  }
  for (const Deal& deal : manifest.deals()) {
    const uint64_t first_step = checkpoint.deals.empty() ? 0 : checkpoint.deals.back().step();
    RETURN_IF_ERROR(CheckDeal(deal, kMostDealtWorkers, first_step));
    checkpoint.deals.push_back(deal);
  }
  if (manifest.has_lead()) checkpoint.lead = LeadOf(manifest.lead());
  for (const CheckpointManifest::Shard& entry : manifest.shards()) {
    if (!checkpoint.shards.empty() && entry.shard() <= checkpoint.shards.back().shard.value) {
      return OutOfRange("shards: shard", entry.shard());
    }
    ASSIGN_OR_RETURN(SavedShard saved, SavedShardOf(entry));
    checkpoint.shards.push_back(std::move(saved));
  }
  return checkpoint;
}

std::string ManifestEnd(const std::string& body) {
  const auto bytes = std::as_bytes(std::span(body));
  return absl::StrFormat(" \"manifest_crc32c\": \"%08x\"\n}\n", Crc32c(bytes));
}

std::string PrintManifest(const CheckpointManifest& manifest) {
  CheckpointManifest unsigned_manifest = manifest;
  unsigned_manifest.clear_manifest_crc32c();
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // Printing fails only for values outside JSON's range in well-known types, which a manifest does
  // not use.
  (void)google::protobuf::util::MessageToJsonString(unsigned_manifest, &text, options);
  text.resize(text.rfind('\n', text.rfind('}')));  // removes the line of the last brace
  text += ",\n";
  return text + ManifestEnd(text);
}

absl::StatusOr<CheckpointManifest> ParseManifest(const std::string& text) {
  const size_t end_length = ManifestEnd("").size();
  const std::string body = text.substr(0, text.size() - std::min(text.size(), end_length));
  if (text != body + ManifestEnd(body)) return absl::InvalidArgumentError("wrong checksum");
  if (IsTooDeep(text)) {
    return absl::InvalidArgumentError(
        absl::StrCat("nested too deeply (expected at most ", kMostLevels, " levels, got more)"));
  }
  google::protobuf::util::JsonParseOptions options;
  CheckpointManifest manifest;
  const auto status = google::protobuf::util::JsonStringToMessage(text, &manifest, options);
  if (!status.ok()) return absl::InvalidArgumentError(std::string(status.message()));
  if (manifest.format() != kFormat) {
    return absl::InvalidArgumentError(
        absl::StrCat("unknown format (expected ", kFormat, ", got ", manifest.format(), ")"));
  }
  return manifest;
}

std::string ShardFileName(ShardId shard, Version version) {
  return absl::StrFormat("shard-%05u-v%u.safetensors", shard.value, version.value);
}

ByteChain EncodeShardFile(const SavedShard& saved) {
  const std::vector<NamedArray> arrays = ArraysOf(saved.state);
  std::vector<SafetensorsTensor> tensors;
  ByteChain body;
  for (const NamedArray& array : arrays) {
    const auto count = static_cast<int64_t>(array.bytes.size() / ValueBytes(array.dtype));
    tensors.push_back({array.name, array.dtype, {count}, array.bytes.size()});
    body.Append(array.bytes);
  }
  const std::string header =
      SafetensorsHeader(tensors, {{"shard", absl::StrCat(saved.shard.value)},
                                  {"version", absl::StrCat(saved.state.store.version.value)}});
  ByteChain file = CopyArray(std::as_bytes(std::span(header)));
  file.Append(body);
  return file;
}

absl::Status DecodeShardFile(const ByteChain& file, SavedShard& saved) {
  std::vector<std::byte> unused;
  const std::span<const std::byte> bytes = file.Contiguous(unused);
  const std::span<const uint8_t> values(reinterpret_cast<const uint8_t*>(bytes.data()),
                                        bytes.size());
  ASSIGN_OR_RETURN(SafetensorsIndex index, ParseSafetensors(values, "shard file"));
  // Removes the tensor NAME from INDEX and returns its bytes, empty if there is none.
  absl::Status wrong_type;
  const auto take = [&](const std::string& name, const std::string& dtype) -> ByteChain {
    const auto found = index.find(name);
    if (found == index.end()) return ByteChain();
    const SafetensorsEntry entry = std::move(found->second);
    index.erase(found);
    if (entry.dtype != dtype) {
      wrong_type = absl::InvalidArgumentError(absl::StrCat(
          "tensor \"", name, "\": wrong type (expected ", dtype, ", got ", entry.dtype, ")"));
    }
    return file.Sub(static_cast<size_t>(entry.bytes.data() - values.data()), entry.bytes.size());
  };
  StoreSnapshot& store = saved.state.store;
  store.masters = take("masters", "F32");
  for (ByteChain slot = take("slot_0", "F32"); !slot.empty();) {
    store.updater.slots.push_back(std::move(slot));
    slot = take(absl::StrCat("slot_", store.updater.slots.size()), "F32");
  }
  store.updater.average = take("average", "F32");
  store.updater.last = take("last", "U32");
  store.updater.remainder = take("remainder", "F32");
  store.updater.selected_list = take("selected_list", "U8");
  if (saved.state.published.has_value()) saved.state.published->values = take("published", "F32");
  saved.state.mean_squares = take("mean_squares", "F32");
  RETURN_IF_ERROR(wrong_type);
  if (!index.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("tensor \"", index.begin()->first, "\": not an array of this shard"));
  }
  return absl::OkStatus();
}

std::string HexCrc32c(const ByteChain& bytes) {
  uint32_t crc = 0;
  for (const ByteChain::Piece& piece : bytes.pieces()) crc = Crc32c(piece.bytes, crc);
  return absl::StrFormat("%08x", crc);
}

}  // namespace thinwire

#include "worker/trainer/trainer_state.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/encode/checked_file.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

std::span<const std::byte> AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }

void PutNumber(uint64_t number, std::string& out) {
  out.append(reinterpret_cast<const char*>(&number), sizeof(number));
}

void PutText(std::string_view text, std::string& out) {
  const auto length = static_cast<uint32_t>(text.size());
  out.append(reinterpret_cast<const char*>(&length), sizeof(length));
  out.append(text);
}

// Returns everything before the first value: the owner, the step and the number of buffers.
std::string Head(const TrainerStateFile& file, size_t buffer_count) {
  std::string head = "TWTRAIN1";
  PutText(file.job, head);
  const auto put = [&](uint32_t number) {
    head.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  put(file.worker.value);
  PutNumber(file.step.value, head);
  put(static_cast<uint32_t>(buffer_count));
  return head;
}

// Returns everything of BUFFER before its values.
std::string HeadOf(const ModelBuffer& buffer) {
  std::string head;
  PutText(buffer.name, head);
  PutText(buffer.dtype, head);
  const auto dimension_count = static_cast<uint32_t>(buffer.shape.size());
  head.append(reinterpret_cast<const char*>(&dimension_count), sizeof(dimension_count));
  for (const int64_t dimension : buffer.shape) PutNumber(static_cast<uint64_t>(dimension), head);
  PutNumber(buffer.bytes.size(), head);
  return head;
}

// Returns the arrays of all values that the local steps of STATE keep.
template <typename State>
auto SlotsOf(State& state) {
  std::vector<decltype(&state.streaming.x)> slots;
  for (auto& slot : state.local.slots) slots.push_back(&slot);
  if (!state.streaming.x.empty()) {
    slots.push_back(&state.streaming.x);
    slots.push_back(&state.streaming.base);
  }
  return slots;
}

// Reads as many bytes as EXPECTED has and compares them. WHAT names them in the error.
absl::Status Expect(const std::string& path, const std::string& what, const std::string& expected,
                    client::CheckedReader& reader) {
  std::string got(expected.size(), '\0');
  RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(got))));
  if (got == expected) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      path, ": not the state of this trainer (expected ", what, ", got something else)"));
}

}  // namespace

absl::Status WriteTrainerState(const TrainerStateFile& file, const TrainerState& state) {
  client::CheckedWriter writer(file.path);
  writer.Write(AsBytes(Head(file, state.buffers.size())));
  for (const ModelBuffer& buffer : state.buffers) {
    writer.Write(AsBytes(HeadOf(buffer)));
    writer.Write(std::as_bytes(std::span(buffer.bytes)));
  }
  writer.Put(state.local.update_count);
  const auto slots = SlotsOf(state);
  writer.Put(static_cast<uint32_t>(slots.size()));
  for (const std::vector<float>* slot : slots) {
    writer.Put(uint64_t{slot->size()});
    writer.Write(std::as_bytes(std::span(*slot)));
  }
  if (!state.streaming.x.empty()) {
    writer.Put(state.streaming.step.has_value() ? state.streaming.step->value + 1 : uint64_t{0});
  }
  return writer.Commit();
}

absl::StatusOr<TrainerState> ReadTrainerState(const TrainerStateFile& file, TrainerState state) {
  ASSIGN_OR_RETURN(client::CheckedReader reader, client::CheckedReader::Open(file.path));
  const std::string owner =
      absl::StrCat("worker ", file.worker.value, " of job \"", file.job, "\" before step ",
                   file.step.value, " with ", state.buffers.size(), " buffers");
  RETURN_IF_ERROR(Expect(file.path, owner, Head(file, state.buffers.size()), reader));
  for (ModelBuffer& buffer : state.buffers) {
    RETURN_IF_ERROR(
        Expect(file.path, absl::StrCat("buffer ", buffer.name), HeadOf(buffer), reader));
    RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(buffer.bytes))));
  }
  RETURN_IF_ERROR(reader.Get(state.local.update_count));
  std::string expected_count;
  const std::vector<std::vector<float>*> slots = SlotsOf(state);
  const auto slot_count = static_cast<uint32_t>(slots.size());
  expected_count.append(reinterpret_cast<const char*>(&slot_count), sizeof(slot_count));
  RETURN_IF_ERROR(Expect(file.path, absl::StrCat(slot_count, " slots of the local optimizer"),
                         expected_count, reader));
  bool finite = true;
  for (std::vector<float>* slot : slots) {
    std::string length;
    PutNumber(slot->size(), length);
    RETURN_IF_ERROR(
        Expect(file.path, absl::StrCat(slot->size(), " values in a slot"), length, reader));
    RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(*slot))));
    finite = finite && std::ranges::all_of(*slot, [](float v) { return std::isfinite(v); });
  }
  if (!state.streaming.x.empty()) {
    uint64_t step = 0;
    RETURN_IF_ERROR(reader.Get(step));
    state.streaming.step = step > 0 ? std::optional(Step{step - 1}) : std::nullopt;
  }
  RETURN_IF_ERROR(reader.Finish());
  if (finite) return state;
  return absl::DataLossError(absl::StrCat(file.path, ": a value of a slot is not finite"));
}

}  // namespace thinwire

#include "worker/trainer/loss_scale.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "absl/strings/str_cat.h"
#include "client/encode/checked_file.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

// Returns the header of a loss-scale file. The header identifies the file's owner: the job and the
// worker.
std::string Head(const LossScaleFile& file) {
  std::string head = "TWSCALE1";
  const auto put = [&](uint32_t number) {
    head.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  put(static_cast<uint32_t>(file.job.size()));
  head += file.job;
  put(file.worker.value);
  return head;
}

bool IsPowerOfTwo(float value) {
  int exponent = 0;
  return std::isfinite(value) && std::frexp(value, &exponent) == 0.5f;
}

}  // namespace

void LossScale::Good() {
  if (++state_.good_steps < scaling_.interval) return;
  state_ = {.value = std::min(2 * state_.value, scaling_.largest)};
}

void LossScale::Overflowed() {
  ++overflow_count_;
  state_ = {.value = std::max(state_.value / 2, 1.0f)};
}

void LossScale::Restore(const State& state) {
  state_ = state;
  state_.value = std::min(state_.value, scaling_.largest);
}

absl::Status WriteLossScale(const LossScaleFile& file, const LossScale::State& state) {
  const std::string head = Head(file);
  client::CheckedWriter writer(file.path);
  writer.Write(std::as_bytes(std::span(head)));
  writer.Put(state.value);
  writer.Put(state.good_steps);
  return writer.Commit();
}

absl::StatusOr<LossScale::State> ReadLossScale(const LossScaleFile& file) {
  ASSIGN_OR_RETURN(client::CheckedReader reader, client::CheckedReader::Open(file.path));
  const std::string expected = Head(file);
  std::string head(expected.size(), '\0');
  RETURN_IF_ERROR(reader.Read(std::as_writable_bytes(std::span(head))));
  if (head != expected) {
    return absl::FailedPreconditionError(absl::StrCat(file.path, ": not the loss scale of worker ",
                                                      file.worker.value, " of job \"", file.job,
                                                      "\" (expected its header, got another)"));
  }
  LossScale::State state;
  RETURN_IF_ERROR(reader.Get(state.value));
  RETURN_IF_ERROR(reader.Get(state.good_steps));
  RETURN_IF_ERROR(reader.Finish());
  if (state.value >= 1 && IsPowerOfTwo(state.value)) return state;
  return absl::DataLossError(
      absl::StrCat(file.path, ": invalid loss scale (expected a power of two of at least 1, got ",
                   state.value, ")"));
}

}  // namespace thinwire

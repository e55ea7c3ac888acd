#include "worker/loss_scale_file.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/strings/str_cat.h"
#include "client/encode/checked_file.h"

namespace thinwire {
namespace {

// What a file of this place begins with.
std::string Head(const LossScalePlace& place) {
  std::string head = "TWSCALE1";
  const auto put = [&](uint32_t number) {
    head.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  put(static_cast<uint32_t>(place.job.size()));
  head += place.job;
  put(place.worker.value);
  return head;
}

bool IsPowerOfTwo(float value) {
  int exponent = 0;
  return std::isfinite(value) && std::frexp(value, &exponent) == 0.5f;
}

}  // namespace

absl::Status WriteLossScale(const LossScalePlace& place, const LossScale::State& state) {
  const std::string head = Head(place);
  client::CheckedWriter file(place.path);
  file.Write(std::as_bytes(std::span(head)));
  file.Put(state.value);
  file.Put(state.good_steps);
  return file.Commit();
}

absl::StatusOr<LossScale::State> ReadLossScale(const LossScalePlace& place) {
  absl::StatusOr<client::CheckedReader> file = client::CheckedReader::Open(place.path);
  if (!file.ok()) return file.status();
  const std::string want = Head(place);
  std::string got(want.size(), '\0');
  if (absl::Status s = file->Read(std::as_writable_bytes(std::span(got))); !s.ok()) return s;
  if (got != want) {
    return absl::FailedPreconditionError(
        absl::StrCat(place.path, ": want the loss scale of worker ", place.worker.value,
                     " of job \"", place.job, "\", got another file"));
  }
  LossScale::State state;
  absl::Status status = file->Get(state.value);
  if (status.ok()) status = file->Get(state.good_steps);
  if (status.ok()) status = file->Finish();
  if (!status.ok()) return status;
  if (state.value >= 1 && IsPowerOfTwo(state.value)) return state;
  return absl::DataLossError(absl::StrCat(
      place.path, ": want a loss scale that is a power of two from 1 on, got ", state.value));
}

}  // namespace thinwire

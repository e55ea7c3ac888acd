#include "admin/summary_writer.h"

#include <unistd.h>

#include <bit>
#include <cerrno>
#include <climits>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/host_name.h"
#include "common/files/crc32c.h"

namespace thinwire {
namespace {

static_assert(std::endian::native == std::endian::little);

template <typename Number>
std::string BytesOf(Number number) {
  return std::string(reinterpret_cast<const char*>(&number), sizeof(number));
}

std::string MaskedChecksum(std::string_view bytes) {
  const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes)));
  return BytesOf<uint32_t>(std::rotr(crc, 15) + 0xa282ead8u);
}

TensorBoardHistogram HistogramOf(const std::map<uint64_t, uint64_t>& counts) {
  TensorBoardHistogram histogram;
  if (counts.empty()) return histogram;
  histogram.set_min(static_cast<double>(counts.begin()->first));
  histogram.set_max(static_cast<double>(counts.rbegin()->first));
  double sum = 0;
  double sum_squares = 0;
  double num = 0;
  double limit = 0;  // the upper end of the last bucket
  for (const auto& [key, count] : counts) {
    const auto value = static_cast<double>(key);
    const auto n = static_cast<double>(count);
    // Each value has a bucket of width 1. A bucket without samples covers the values between.
    if (const double begin = value - 0.5; begin > limit) {
      histogram.add_bucket_limit(begin);
      histogram.add_bucket(0);
    }
    limit = value + 0.5;
    histogram.add_bucket_limit(limit);
    histogram.add_bucket(n);
    num += n;
    sum += n * value;
    sum_squares += n * value * value;
  }
  histogram.set_num(num);
  histogram.set_sum(sum);
  histogram.set_sum_squares(sum_squares);
  return histogram;
}

}  // namespace

std::string EventRecord(std::string_view event) {
  const std::string length = BytesOf<uint64_t>(event.size());
  return absl::StrCat(length, MaskedChecksum(length), absl::string_view(event.data(), event.size()),
                      MaskedChecksum(event));
}

absl::StatusOr<std::unique_ptr<SummaryWriter>> SummaryWriter::Create(const std::string& folder,
                                                                     Clock& clock) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return absl::ErrnoToStatus(error.value(), absl::StrCat(folder, ": cannot make the folder"));
  }
  const std::string path =
      absl::StrCat(folder, "/events.out.tfevents.", absl::ToUnixSeconds(clock.Now()), ".",
                   HostName(), ".", getpid());
  OwnedFile file(std::fopen(path.c_str(), "wbxe"));
  if (file == nullptr) return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write"));
  std::unique_ptr<SummaryWriter> writer(new SummaryWriter(path, std::move(file), clock));
  TensorBoardEvent version;
  version.set_file_version("brain.Event:2");
  writer->Write(0, std::move(version));
  if (absl::Status flushed = writer->Flush(); !flushed.ok()) return flushed;
  return writer;
}

void SummaryWriter::AddScalars(uint64_t step, std::span<const Scalar> scalars) {
  TensorBoardEvent event;
  for (const Scalar& scalar : scalars) {
    TensorBoardSummary::Value& value = *event.mutable_summary()->add_value();
    value.set_tag(scalar.tag);
    value.set_simple_value(static_cast<float>(scalar.value));
  }
  Write(step, std::move(event));
}

void SummaryWriter::AddHistogram(uint64_t step, const std::string& tag,
                                 const std::map<uint64_t, uint64_t>& histogram) {
  TensorBoardEvent event;
  TensorBoardSummary::Value& value = *event.mutable_summary()->add_value();
  value.set_tag(tag);
  *value.mutable_histo() = HistogramOf(histogram);
  Write(step, std::move(event));
}

void SummaryWriter::Write(uint64_t step, TensorBoardEvent event) {
  if (!status_.ok()) return;
  event.set_step(static_cast<int64_t>(step));
  event.set_wall_time(absl::ToDoubleSeconds(clock_.Now() - absl::UnixEpoch()));
  const std::string record = EventRecord(event.SerializeAsString());
  if (std::fwrite(record.data(), 1, record.size(), file_.get()) < record.size()) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot write"));
  }
}

absl::Status SummaryWriter::Flush() {
  if (status_.ok() && std::fflush(file_.get()) != 0) {
    status_ = absl::ErrnoToStatus(errno, absl::StrCat(path_, ": cannot write"));
  }
  return status_;
}

}  // namespace thinwire

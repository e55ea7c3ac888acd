#include "common/tls/credentials_watch.h"

#include <glog/logging.h>

#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"
#include "common/tls/certificate.h"

namespace thinwire {
namespace {

constexpr absl::Duration kInterval = absl::Seconds(2);

}  // namespace

CredentialsWatch::CredentialsWatch(std::string dir, absl::Time now) : dir_(std::move(dir)) {
  known_ = latest_ = Read(now).key;
}

std::optional<CredentialsWatch::Finding> CredentialsWatch::Look(absl::Time now) {
  State state = Read(now);
  const bool again = state.key == std::exchange(latest_, state.key);
  if (!again || state.key == known_) return std::nullopt;
  known_ = state.key;
  return std::move(state.finding);
}

CredentialsWatch::State CredentialsWatch::Read(absl::Time now) const {
  const absl::StatusOr<Certificate> certificate = CheckCredentials(dir_, now);
  if (!certificate.ok()) {
    const std::string message(certificate.status().message());
    return {.key = message,
            .finding = {.error = true,
                        .text = absl::StrCat(message,
                                             "; new connections may fail until the files "
                                             "of the folder are replaced")}};
  }
  const auto authorities = ReadWholeFile(absl::StrCat(dir_, "/", kAuthorityFile));
  return {.key = absl::StrCat(certificate->fingerprint, authorities.value_or("")),
          .finding = {
              .error = false,
              .text = absl::StrCat(dir_, "/", kCertificateFile, ": read again, valid until ",
                                   absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", certificate->not_after,
                                                    absl::UTCTimeZone()))}};
}

CredentialsLog::CredentialsLog(const std::string& dir, ExecutorFactory& threads, Clock& unix_clock)
    : dir_(dir), unix_clock_(unix_clock), read_nanos_(absl::ToUnixNanos(unix_clock.Now())) {
  if (dir.empty()) return;
  watch_.emplace(dir, unix_clock.Now());
  thread_ = threads.Make();
  thread_->PostAt(thread_->Now() + kInterval, [this] { Look(); });
}

void CredentialsLog::Look() {
  const absl::Time now = unix_clock_.Now();
  if (const auto finding = watch_->Look(now)) {
    (finding->error ? LOG(ERROR) : LOG(INFO)) << finding->text;
    if (!finding->error) read_nanos_ = absl::ToUnixNanos(now);
  }
  thread_->PostAt(thread_->Now() + kInterval, [this] { Look(); });
}

}  // namespace thinwire

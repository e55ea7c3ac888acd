#include "common/tls/peer_certificates.h"

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/files/read_file.h"
#include "common/tls/certificate.h"

namespace thinwire {

absl::Status PeerCertificates::Check(const std::string& chain, absl::Time now) {
  absl::MutexLock lock(&mu_);
  if (now < read_ || now >= read_ + refresh_) {  // the clock may be set back
    read_ = now;
    results_.clear();
    const std::string path = absl::StrCat(dir_, "/", kAuthorityFile);
    absl::StatusOr<std::string> text = ReadWholeFile(path);
    // While somebody writes the file, the former authorities remain.
    if (text.ok() && ParseCertificates(*text, path).ok()) authorities_ = *std::move(text);
  }
  const auto [result, added] = results_.try_emplace(chain);
  if (added) result->second = CheckClient(chain, authorities_, now);
  return result->second;
}

}  // namespace thinwire

// PeerCertificates decides whether the certificate of a peer is valid now. TLS checks a certificate
// only while it opens a connection: an open connection outlives the certificate, and a resumed TLS
// session is not checked again.
//
// The authorities are those in ca.pem of the credentials folder of this process. The file is read
// again, and each certificate is checked again, after the refresh time.
//
// Thread-safe.
#ifndef THINWIRE_COMMON_TLS_PEER_CERTIFICATES_H_
#define THINWIRE_COMMON_TLS_PEER_CERTIFICATES_H_

#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace thinwire {

class PeerCertificates {
 public:
  // DIR: a folder that CheckCredentials has accepted.
  PeerCertificates(std::string dir, absl::Duration refresh)
      : dir_(std::move(dir)), refresh_(refresh) {}

  // Returns OK if the first certificate of CHAIN, a PEM text that TLS has accepted at some time, is
  // valid for a client. Errors: those of CheckClient.
  absl::Status Check(const std::string& chain, absl::Time now) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const std::string dir_;
  const absl::Duration refresh_;
  absl::Mutex mu_;
  absl::Time read_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::string authorities_ ABSL_GUARDED_BY(mu_);
  // By chain, since the last reading. Only an authority can make a new chain.
  absl::flat_hash_map<std::string, absl::Status> results_ ABSL_GUARDED_BY(mu_);
};

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_PEER_CERTIFICATES_H_

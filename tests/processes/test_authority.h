// TestAuthority issues credentials folders for tests.
#ifndef THINWIRE_TESTS_PROCESSES_TEST_AUTHORITY_H_
#define THINWIRE_TESTS_PROCESSES_TEST_AUTHORITY_H_

#include <string>

#include "absl/time/time.h"
#include "common/tls/authority.h"
#include "common/tls/identity.h"
#include "proto/grpc_credentials.h"

namespace thinwire {

// Not thread-safe. A failure fails the test.
class TestAuthority {
 public:
  // The folders are made below FOLDER.
  explicit TestAuthority(std::string folder);

  const KeyPair& pair() const { return pair_; }
  KeyPair Issue(const Identity& identity, absl::Duration validity = absl::Hours(24));

  // Writes new credentials for IDENTITY, in place of earlier ones, and returns their folder. The
  // process trusts AUTHORITIES; "": this authority.
  std::string Write(const Identity& identity, const std::string& authorities = "");
  // Returns the folder of IDENTITY.
  std::string DirOf(const Identity& identity) const;

  // Writes and loads new credentials.
  Credentials Load(const Identity& identity);

 private:
  const std::string folder_;
  const KeyPair pair_;
};

}  // namespace thinwire

#endif  // THINWIRE_TESTS_PROCESSES_TEST_AUTHORITY_H_

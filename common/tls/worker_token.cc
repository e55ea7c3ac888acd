#include "common/tls/worker_token.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/tls/openssl_pointers.h"

namespace thinwire {
namespace {

constexpr size_t kKeyBytes = 32;
constexpr size_t kEndBytes = 8;
constexpr size_t kDigestBytes = 16;

void AppendNumber(uint64_t number, int byte_count, std::string& bytes) {
  for (int i = 0; i < byte_count; ++i) bytes.push_back(static_cast<char>(number >> (8 * i)));
}

}  // namespace

absl::StatusOr<std::string> DrawTokenKey() {
  std::array<unsigned char, kKeyBytes> key;
  if (RAND_priv_bytes(key.data(), key.size()) != 1) {
    return absl::InternalError(absl::StrCat("token key: no random numbers: ", OpensslError()));
  }
  return std::string(key.begin(), key.end());
}

std::string WorkerToken(absl::string_view key, absl::string_view job, WorkerId worker,
                        Incarnation incarnation, absl::Time end) {
  std::string token;
  AppendNumber(static_cast<uint64_t>(absl::ToUnixSeconds(end)), kEndBytes, token);
  std::string message;
  AppendNumber(worker.value, sizeof(worker.value), message);
  AppendNumber(incarnation.value, sizeof(incarnation.value), message);
  absl::StrAppend(&message, token, job);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest = {};
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(),
       /*md_len=*/nullptr);
  token.append(digest.begin(), digest.begin() + kDigestBytes);
  return token;
}

absl::Time TokenEnd(absl::string_view token) {
  if (token.size() < kEndBytes) return absl::InfinitePast();
  uint64_t seconds = 0;
  for (size_t i = 0; i < kEndBytes; ++i) {
    seconds |= uint64_t{static_cast<uint8_t>(token[i])} << (8 * i);
  }
  return absl::FromUnixSeconds(static_cast<int64_t>(seconds));
}

bool SameToken(absl::string_view token, absl::string_view shown) {
  return token.size() == shown.size() &&
         CRYPTO_memcmp(token.data(), shown.data(), token.size()) == 0;
}

}  // namespace thinwire

// Owning pointers to the types of OpenSSL, and its error messages. Included only by the sources of
// this folder.
#ifndef THINWIRE_COMMON_TLS_OPENSSL_POINTERS_H_
#define THINWIRE_COMMON_TLS_OPENSSL_POINTERS_H_

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>
#include <string>

#include "absl/strings/string_view.h"

namespace thinwire {

// Calls the OpenSSL function FREE.
template <auto free>
struct OpensslFree {
  template <typename T>
  void operator()(T* object) const {
    free(object);
  }
};

using OwnedBio = std::unique_ptr<BIO, OpensslFree<BIO_free>>;
using OwnedKey = std::unique_ptr<EVP_PKEY, OpensslFree<EVP_PKEY_free>>;
using OwnedX509 = std::unique_ptr<X509, OpensslFree<X509_free>>;
using OwnedExtension = std::unique_ptr<X509_EXTENSION, OpensslFree<X509_EXTENSION_free>>;
using OwnedNames = std::unique_ptr<GENERAL_NAMES, OpensslFree<GENERAL_NAMES_free>>;
// Owns the stack, not its certificates.
struct StackFree {
  void operator()(STACK_OF(X509) * stack) const { sk_X509_free(stack); }
};
using OwnedStack = std::unique_ptr<STACK_OF(X509), StackFree>;
using OwnedStore = std::unique_ptr<X509_STORE, OpensslFree<X509_STORE_free>>;
using OwnedStoreContext = std::unique_ptr<X509_STORE_CTX, OpensslFree<X509_STORE_CTX_free>>;

// Returns a BIO that reads TEXT, which must outlive it.
inline OwnedBio ReadBio(absl::string_view text) {
  return OwnedBio(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// Returns the first queued error of this thread, and clears the queue.
inline std::string OpensslError() {
  char text[256] = "unknown error";
  if (const unsigned long code = ERR_get_error(); code != 0) {
    ERR_error_string_n(code, text, sizeof(text));
  }
  ERR_clear_error();
  return text;
}

}  // namespace thinwire

#endif  // THINWIRE_COMMON_TLS_OPENSSL_POINTERS_H_

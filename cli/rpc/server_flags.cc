#include "cli/rpc/server_flags.h"

#include "absl/strings/str_cat.h"

namespace thinwire {

CLI::Option* AddAddressesFlag(CLI::App& app, std::string& addresses) {
  return app
      .add_option("--addresses", addresses,
                  "host:port of every server, in the order of their numbers, separated by commas")
      ->type_name("LIST")
      ->envname("THINWIRE_ADDRESSES");
}

CLI::Option* AddCredentialsFlag(CLI::App& app, std::string& credentials, const std::string& owner) {
  return app
      .add_option("--credentials", credentials,
                  absl::StrCat("The folder with ", owner,
                               " ca.pem, cert.pem and key.pem (thinwire certs), for servers with "
                               "mutual TLS"))
      ->type_name("DIR")
      ->envname("THINWIRE_CREDENTIALS");
}

}  // namespace thinwire

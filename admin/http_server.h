// HttpServer serves a fixed set of read-only pages over plaintext HTTP/1.1, on a thread of its own:
// the admin port of a process. No request changes anything.
//
//   request                           answer
//   GET or HEAD of a page             the page
//   GET or HEAD of another path       404
//   another method                    405 with "Allow: GET, HEAD"
//   a head above kMaxHeadBytes        431
//   a malformed head                  400
//
// A connection without a complete request within the timeout is closed. So is, for a connection
// beyond the limit, the one whose last complete request is longest ago.
#ifndef THINWIRE_ADMIN_HTTP_SERVER_H_
#define THINWIRE_ADMIN_HTTP_SERVER_H_

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace thinwire {

struct HttpReply {
  unsigned status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpOptions {
  // Maps a path such as "/metrics" to its page. The server calls a page on its only thread, so a
  // page must not block.
  std::map<std::string, std::function<HttpReply()>> pages;
  size_t max_connection_count = 32;
  absl::Duration timeout =
      absl::Seconds(10);  // of one request, and of a connection between two requests
};

// Returns the options of an admin port with the pages that every process has. Their contents are
// the methods of ADMIN, which must outlive the server.
template <typename Admin>
HttpOptions AdminOptions(const Admin& admin) {
  HttpOptions options;
  options.pages = {{"/", [&admin] { return admin.Page(); }},
                   {"/status.json", [&admin] { return admin.StatusJson(); }},
                   {"/metrics", [&admin] { return admin.Metrics(); }},
                   {"/healthz", [&admin] { return admin.Healthz(); }},
                   {"/readyz", [&admin] { return admin.Readyz(); }}};
  return options;
}

// Thread-safe.
class HttpServer {
 public:
  static constexpr size_t kMaxHeadBytes = 8192;

  // Listens on ADDRESS, which is host:port; port 0 takes a free port. Errors: InvalidArgument for a
  // malformed address; Unavailable if the server cannot listen there.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address,
                                                           HttpOptions options);
  // Closes all connections. No page runs afterwards.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Returns the host:port on which the server listens.
  const std::string& address() const;
  // Returns the host:port for links from other machines: with the name of this machine if the server
  // listens on all addresses.
  std::string page() const;

 private:
  class Listening;
  explicit HttpServer(std::unique_ptr<Listening> listening);

  std::unique_ptr<Listening> listening_;
};

}  // namespace thinwire

#endif  // THINWIRE_ADMIN_HTTP_SERVER_H_

#include "admin/http_server.h"

#include <fcntl.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdint>
#include <list>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/host_name.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = beast::http;
using boost::system::error_code;
using tcp = asio::ip::tcp;

// After an accept has failed, such as without a free file descriptor, the server waits for this
// time.
constexpr std::chrono::milliseconds kAcceptPause{100};
// After the last answer of a connection, the server still reads this much, so that the client
// receives the answer although it has sent more than the server needed.
constexpr size_t kMaxDrainedBytes = 1 << 16;
constexpr std::chrono::seconds kDrainTime{1};

struct HostPort {
  std::string host;
  std::string port;
};

absl::StatusOr<HostPort> SplitAddress(const std::string& address) {
  const size_t colon = address.rfind(':');
  uint32_t port = 0;
  if (colon == std::string::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port > 65535) {
    return absl::InvalidArgumentError(absl::StrCat(
        "admin address: wrong value (expected host:port with a port from 0 to 65535, got \"",
        address, "\")"));
  }
  HostPort parts{.host = address.substr(0, colon), .port = address.substr(colon + 1)};
  if (parts.host.size() > 2 && parts.host.front() == '[' && parts.host.back() == ']') {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  }
  return parts;
}

std::string TextOf(const tcp::endpoint& endpoint) {
  const std::string host = endpoint.address().to_string();
  return endpoint.address().is_v6() ? absl::StrCat("[", host, "]:", endpoint.port())
                                    : absl::StrCat(host, ":", endpoint.port());
}

// Keeps a child process of this process from inheriting SOCKET.
template <typename Socket>
void CloseInChildren(Socket& socket) {
  fcntl(socket.native_handle(), F_SETFD, FD_CLOEXEC);
}

// Returns a socket that listens on ADDRESS.
absl::StatusOr<tcp::acceptor> Listen(asio::io_context& io, const std::string& address) {
  ASSIGN_OR_RETURN(const HostPort parts, SplitAddress(address));
  const auto failed = [&](const error_code& error) {
    return absl::UnavailableError(
        absl::StrCat("admin address ", address, ": cannot listen: ", error.message()));
  };
  error_code error;
  tcp::resolver resolver(io);
  const auto found = resolver.resolve(
      parts.host, parts.port, tcp::resolver::passive | tcp::resolver::address_configured, error);
  if (error) return failed(error);
  const tcp::endpoint endpoint = found.begin()->endpoint();
  tcp::acceptor acceptor(io);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(tcp::acceptor::max_listen_connections, error);
  if (error) return failed(error);
  CloseInChildren(acceptor);
  return acceptor;
}

// One connection. Lives on the server's thread; its pending operation keeps it alive.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  // The open connections. The first one has waited longest since it was opened or has sent a
  // complete request.
  using List = std::list<Connection*>;

  // OPTIONS and OPEN must outlive the connection.
  Connection(tcp::socket socket, const HttpOptions& options, List& open)
      : stream_(std::move(socket)), options_(options), open_(open) {
    open_.splice(open_.end(), self_);
  }
  ~Connection() { Leave(); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Ends the pending operation with an error, which ends the connection.
  void Close() {
    Leave();
    stream_.close();
  }

  void ReadRequest() {
    head_.emplace();
    head_->header_limit(HttpServer::kMaxHeadBytes);
    stream_.expires_after(absl::ToChronoMilliseconds(options_.timeout));
    http::async_read_header(
        stream_, buffer_, *head_,
        [self = shared_from_this()](const error_code& error, size_t) { self->OnHead(error); });
  }

 private:
  // Removes the connection from the open ones.
  void Leave() {
    if (self_.empty()) self_.splice(self_.end(), open_, place_);
  }

  void OnHead(const error_code& error) {
    if (!error) {
      if (self_.empty()) open_.splice(open_.end(), open_, place_);
      return Answer(ReplyOf(head_->get()));
    }
    if (error == http::error::header_limit || error == http::error::buffer_overflow) {
      last_ = true;
      return Answer({.status = 431, .body = "the head of the request is too long\n"});
    }
    // Errors of other categories mean that the client is gone or too slow.
    if (error.category() != http::make_error_code(http::error::bad_method).category() ||
        error == http::error::end_of_stream || error == http::error::partial_message) {
      return;
    }
    last_ = true;
    Answer({.status = 400, .body = "the request is malformed\n"});
  }

  HttpReply ReplyOf(const http::request<http::empty_body>& request) {
    const bool has_body = head_->chunked() || head_->content_length().value_or(0) > 0;
    last_ = has_body || !request.keep_alive();
    if (request.method() != http::verb::get && request.method() != http::verb::head) {
      last_ = true;
      return {.status = 405, .body = "only GET and HEAD are allowed\n"};
    }
    const std::string_view target(request.target().data(), request.target().size());
    const auto page = options_.pages.find(std::string(target.substr(0, target.find('?'))));
    if (page == options_.pages.end()) return {.status = 404, .body = "no such page\n"};
    return page->second();
  }

  void Answer(HttpReply reply) {
    answer_.emplace(static_cast<http::status>(reply.status), 11);
    answer_->set(http::field::content_type, reply.type);
    answer_->set(http::field::cache_control, "no-store");
    answer_->set("X-Content-Type-Options", "nosniff");
    answer_->set("Content-Security-Policy",
                 "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
                 "connect-src 'self'; frame-ancestors 'none'");
    if (reply.status == 405) answer_->set(http::field::allow, "GET, HEAD");
    answer_->content_length(reply.body.size());
    answer_->keep_alive(!last_);
    if (head_->get().method() != http::verb::head) answer_->body() = std::move(reply.body);
    stream_.expires_after(absl::ToChronoMilliseconds(options_.timeout));
    http::async_write(stream_, *answer_,
                      [self = shared_from_this()](const error_code& error, size_t) {
                        if (error) return;
                        if (!self->last_) return self->ReadRequest();
                        self->stream_.expires_after(kDrainTime);
                        error_code ignored;
                        self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
                        self->Drain(0);
                      });
  }

  // Reads and drops bytes until the client closes the connection.
  void Drain(size_t drained) {
    if (drained > kMaxDrainedBytes) return;
    stream_.async_read_some(asio::buffer(dropped_), [self = shared_from_this(), drained](
                                                        const error_code& error, size_t n) {
      if (!error) self->Drain(drained + n);
    });
  }

  beast::tcp_stream stream_;
  const HttpOptions& options_;
  List& open_;
  List self_ = {this};  // empty while the connection is in open_
  const List::iterator place_ = self_.begin();
  beast::flat_buffer buffer_{2 * HttpServer::kMaxHeadBytes};
  std::optional<http::request_parser<http::empty_body>> head_;
  std::optional<http::response<http::string_body>> answer_;
  std::array<char, 4096> dropped_;
  bool last_ = false;  // the connection ends after this answer
};

}  // namespace

class HttpServer::Listening {
 public:
  explicit Listening(HttpOptions options) : options_(std::move(options)) {}
  ~Listening() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }

  absl::Status Start(const std::string& address) {
    ASSIGN_OR_RETURN(acceptor_, Listen(io_, address));
    error_code error;
    address_ = TextOf(acceptor_->local_endpoint(error));
    Accept();
    thread_ = std::thread([this] { io_.run(); });
    return absl::OkStatus();
  }
  const std::string& address() const { return address_; }

 private:
  void Accept() {
    acceptor_->async_accept([this](const error_code& error, tcp::socket socket) {
      if (error) {
        pause_.expires_after(kAcceptPause);
        return pause_.async_wait([this](const error_code& ended) {
          if (!ended) Accept();
        });
      }
      CloseInChildren(socket);
      // Idle peers must not keep out others, such as the probe that decides whether this process
      // lives.
      if (connections_.size() >= options_.max_connection_count) connections_.front()->Close();
      std::make_shared<Connection>(std::move(socket), options_, connections_)->ReadRequest();
      Accept();
    });
  }

  const HttpOptions options_;
  Connection::List connections_;  // only the thread uses it
  std::string address_;
  // Declared after the members that the connections use: its destructor destroys the connections.
  asio::io_context io_{1};
  std::optional<tcp::acceptor> acceptor_;
  asio::steady_timer pause_{io_};
  std::thread thread_;
};

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              HttpOptions options) {
  auto listening = std::make_unique<Listening>(std::move(options));
  RETURN_IF_ERROR(listening->Start(address));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(listening)));
}

HttpServer::HttpServer(std::unique_ptr<Listening> listening) : listening_(std::move(listening)) {}

HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return listening_->address(); }

std::string HttpServer::page() const {
  const std::string& own = address();
  for (const absl::string_view all : {"0.0.0.0:", "[::]:"}) {
    if (absl::StartsWith(own, all)) return absl::StrCat(HostName(), ":", own.substr(all.size()));
  }
  return own;
}

}  // namespace thinwire

#include "admin/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "common/base/host_name.h"

namespace thinwire {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

// A connection to SERVER that sends and receives raw bytes.
class RawClient {
 public:
  explicit RawClient(const HttpServer& server) {
    const std::string& address = server.address();
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port)) << address;
    boost::system::error_code error;
    socket_.connect({asio::ip::make_address("127.0.0.1"), static_cast<uint16_t>(port)}, error);
  }

  void Send(const std::string& text) {
    boost::system::error_code error;
    asio::write(socket_, asio::buffer(text), error);
  }
  // Returns the bytes up to the end of the connection.
  std::string ReadAll() {
    std::string text;
    while (Read(text)) {
    }
    return text;
  }
  // Returns the bytes up to the one after END, or up to the end of the connection.
  std::string ReadThrough(const std::string& end) {
    std::string text;
    while (!absl::EndsWith(text, end) && Read(text)) {
    }
    return text;
  }

 private:
  bool Read(std::string& text) {
    std::array<char, 4096> bytes;
    boost::system::error_code error;
    const size_t count = socket_.read_some(asio::buffer(bytes), error);
    text.append(bytes.data(), count);
    return !error;
  }

  asio::io_context io_;
  tcp::socket socket_{io_};
};

std::unique_ptr<HttpServer> Serve(HttpOptions options = {}) {
  options.pages["/"] = [] { return HttpReply{.type = "text/html", .body = "<p>front"}; };
  options.pages["/sick"] = [] { return HttpReply{.status = 503, .body = "sick\n"}; };
  auto server = HttpServer::Start("127.0.0.1:0", std::move(options));
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::string Ask(const HttpServer& server, const std::string& request) {
  RawClient client(server);
  client.Send(request);
  return client.ReadAll();
}

TEST(HttpServerTest, AGetReturnsThePage) {
  const auto server = Serve();
  EXPECT_THAT(server->address(), StartsWith("127.0.0.1:"));
  EXPECT_EQ(server->page(), server->address());
  const std::string answer = Ask(*server, "GET /?x=1 HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Type: text/html\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Security-Policy: default-src 'none'"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n<p>front"));
  EXPECT_THAT(Ask(*server, "GET /sick HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 503 "));
}

TEST(HttpServerTest, LinksNameTheMachineOfAServerThatListensOnAllAddresses) {
  const auto server = HttpServer::Start("0.0.0.0:0", {});
  ASSERT_TRUE(server.ok()) << server.status();
  const std::string& address = (*server)->address();
  EXPECT_EQ((*server)->page(), HostName() + address.substr(address.rfind(':')));
}

TEST(HttpServerTest, AHeadReturnsThePageWithoutItsBody) {
  const auto server = Serve();
  const std::string answer = Ask(*server, "HEAD / HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("Content-Length: 8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST(HttpServerTest, AnotherPathIsNotFound) {
  const auto server = Serve();
  int count = 0;
  for (const char* path : {"/other", "/status", "//", "/../etc/passwd", "/healthz/", "*"}) {
    EXPECT_THAT(Ask(*server, absl::StrCat("GET ", path, " HTTP/1.0\r\n\r\n")),
                StartsWith("HTTP/1.1 404 "))
        << path;
    ++count;
  }
  EXPECT_EQ(count, 6);
}

TEST(HttpServerTest, AnotherMethodIsRefusedWithTheAllowedOnes) {
  const auto server = Serve();
  int count = 0;
  for (const char* method :
       {"POST", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "X"}) {
    const std::string answer =
        Ask(*server, absl::StrCat(method, " / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"));
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 ")) << method;
    EXPECT_THAT(answer, HasSubstr("Allow: GET, HEAD\r\n")) << method;
    ++count;
  }
  EXPECT_EQ(count, 8);
}

TEST(HttpServerTest, ALongHeadIsRefused) {
  const auto server = Serve();
  const std::string fits =
      absl::StrCat("GET / HTTP/1.0\r\nX: ", std::string(7000, 'x'), "\r\n\r\n");
  EXPECT_THAT(Ask(*server, fits), StartsWith("HTTP/1.1 200 "));
  const std::string too_long = absl::StrCat(
      "GET / HTTP/1.0\r\nX: ", std::string(HttpServer::kMaxHeadBytes, 'x'), "\r\n\r\n");
  EXPECT_THAT(Ask(*server, too_long), StartsWith("HTTP/1.1 431 "));
  // A head without an end is refused before the client has sent all of it.
  RawClient client(*server);
  client.Send(std::string(40000, 'x'));
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 4"));
}

TEST(HttpServerTest, AMalformedHeadIsRefused) {
  const auto server = Serve();
  int count = 0;
  for (const char* head : {"\x01\x02\r\n\r\n", "GET /\r\n\r\n",
                           "GET / HTTP/1.1\r\nno colon\r\n\r\n", "\x16\x03\x01\x02\x05\r\n\r\n"}) {
    EXPECT_THAT(Ask(*server, head), StartsWith("HTTP/1.1 400 ")) << head;
    ++count;
  }
  EXPECT_EQ(count, 4);
}

TEST(HttpServerTest, OneConnectionServesSeveralRequests) {
  const auto server = Serve();
  RawClient client(*server);
  for (int i = 0; i < 3; ++i) {
    client.Send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.ReadThrough("<p>front"), StartsWith("HTTP/1.1 200 "));
  }
}

TEST(HttpServerTest, ASlowClientIsDisconnectedAndDelaysNobody) {
  const auto server = Serve({.timeout = absl::Milliseconds(200)});
  RawClient silent(*server);
  RawClient slow(*server);
  slow.Send("GET / HT");
  EXPECT_THAT(Ask(*server, "GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(slow.ReadAll(), "");
  EXPECT_EQ(silent.ReadAll(), "");
}

TEST(HttpServerTest, IdleConnectionsKeepNobodyOut) {
  const auto server = Serve({.max_connection_count = 3, .timeout = absl::Hours(1)});
  std::vector<std::unique_ptr<RawClient>> idle;
  for (int i = 0; i < 10; ++i) {
    idle.push_back(std::make_unique<RawClient>(*server));
    if (i % 2 == 0) idle.back()->Send("GET / HT");
  }
  EXPECT_THAT(Ask(*server, "GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  for (int i = 0; i < 8; ++i) EXPECT_EQ(idle[i]->ReadAll(), "");
}

TEST(HttpServerTest, BeyondTheLimitTheLongestIdleConnectionIsClosed) {
  const auto server = Serve({.max_connection_count = 3});
  std::vector<std::unique_ptr<RawClient>> open;
  const auto expect_answer = [](RawClient& client) {
    client.Send("GET / HTTP/1.1\r\n\r\n");
    EXPECT_THAT(client.ReadThrough("<p>front"), StartsWith("HTTP/1.1 200 "));
  };
  for (int i = 0; i < 3; ++i) {
    open.push_back(std::make_unique<RawClient>(*server));
    expect_answer(*open.back());
  }
  expect_answer(*open[0]);
  EXPECT_THAT(Ask(*server, "GET / HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(open[1]->ReadAll(), "");
  expect_answer(*open[0]);
  expect_answer(*open[2]);
}

TEST(HttpServerTest, ManyShortConnectionsAreServed) {
  const auto server = Serve();
  int served = 0;
  for (int i = 0; i < 500; ++i) {
    served += absl::EndsWith(Ask(*server, "GET / HTTP/1.0\r\n\r\n"), "<p>front") ? 1 : 0;
  }
  EXPECT_EQ(served, 500);
}

TEST(HttpServerTest, TheEndOfTheServerClosesItsConnections) {
  auto server = Serve();
  RawClient idle(*server);
  RawClient active(*server);
  active.Send("GET / HTTP/1.1\r\n\r\n");
  EXPECT_THAT(active.ReadThrough("<p>front"), StartsWith("HTTP/1.1 200 "));
  server.reset();
  EXPECT_EQ(active.ReadAll(), "");
  EXPECT_EQ(idle.ReadAll(), "");
}

TEST(HttpServerTest, AnAddressThatIsTakenOrMalformedIsNamed) {
  const auto server = Serve();
  const auto second = HttpServer::Start(server->address(), {});
  EXPECT_TRUE(absl::IsUnavailable(second.status())) << second.status();
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(server->address()));
  int count = 0;
  for (const char* address : {"", "7070", ":7070", "localhost:", "127.0.0.1:99999", "h:http"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(HttpServer::Start(address, {}).status())) << address;
    ++count;
  }
  EXPECT_EQ(count, 6);
}

}  // namespace
}  // namespace thinwire

// Tests each fault with an echo server on loopback. A held byte is proven to be held by a later
// byte that arrives on another path before it.
#include "tests/fault_proxy/fault_proxy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "tests/fault_proxy/proxy_thread.h"

namespace thinwire {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;
using ::testing::HasSubstr;

// Echoes all bytes of all connections, and counts bytes and ended connections.
class EchoServer {
 public:
  EchoServer() : acceptor_(io_, {boost::asio::ip::address_v4::loopback(), 0}) {
    Accept();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~EchoServer() {
    io_.stop();
    thread_.join();
  }

  std::string address() const {
    return absl::StrCat("127.0.0.1:", acceptor_.local_endpoint().port());
  }

  // Blocks until at least COUNT bytes were received.
  void WaitForBytes(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto received = [&] { return received_bytes_ >= count; };
    mu_.Await(absl::Condition(&received));
  }
  // Blocks until at least COUNT connections have ended.
  void WaitForEnds(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto ended = [&] { return end_count_ >= count; };
    mu_.Await(absl::Condition(&ended));
  }
  size_t received_bytes() {
    absl::MutexLock lock(&mu_);
    return received_bytes_;
  }
  size_t end_count() {
    absl::MutexLock lock(&mu_);
    return end_count_;
  }

 private:
  struct Peer {
    explicit Peer(tcp::socket socket) : socket(std::move(socket)), buffer(1 << 16) {}
    tcp::socket socket;
    std::vector<char> buffer;
  };

  void Accept() {
    acceptor_.async_accept([this](error_code error, tcp::socket socket) {
      if (error) return;
      Echo(std::make_shared<Peer>(std::move(socket)));
      Accept();
    });
  }

  void Echo(const std::shared_ptr<Peer>& peer) {
    peer->socket.async_read_some(boost::asio::buffer(peer->buffer),
                                 [this, peer](error_code error, size_t size) {
                                   if (error) return CountEnd();
                                   {
                                     absl::MutexLock lock(&mu_);
                                     received_bytes_ += size;
                                   }
                                   Reply(peer, size);
                                 });
  }

  void Reply(const std::shared_ptr<Peer>& peer, size_t size) {
    boost::asio::async_write(
        peer->socket, boost::asio::buffer(peer->buffer, size),
        [this, peer](error_code error, size_t) { error ? CountEnd() : Echo(peer); });
  }

  void CountEnd() {
    absl::MutexLock lock(&mu_);
    ++end_count_;
  }

  boost::asio::io_context io_;
  tcp::acceptor acceptor_;
  absl::Mutex mu_;  // guards the counts
  size_t received_bytes_ = 0;
  size_t end_count_ = 0;
  std::thread thread_;
};

// A client connection with blocking operations.
class TestConnection {
 public:
  explicit TestConnection(const std::string& address) : socket_(io_) {
    const std::string port = address.substr(address.rfind(':') + 1);
    socket_.connect(
        {boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(std::stoi(port))});
  }

  void Send(const std::string& bytes) { boost::asio::write(socket_, boost::asio::buffer(bytes)); }
  // Blocks until SIZE bytes or the end of the connection arrived. Returns the bytes.
  std::string Receive(size_t size) {
    std::string bytes(size, '\0');
    bytes.resize(boost::asio::read(socket_, boost::asio::buffer(bytes), error_));
    return bytes;
  }
  // Returns the error of the last Receive().
  error_code error() const { return error_; }
  size_t available() const { return socket_.available(); }
  void CloseSending() { socket_.shutdown(tcp::socket::shutdown_send); }
  // Sends until the connection accepts no more bytes. Returns the number of sent bytes.
  size_t SendUntilFull() {
    socket_.non_blocking(true);
    const std::string bytes(1 << 16, 'x');
    size_t sent = 0;
    for (error_code error; !error;) sent += socket_.write_some(boost::asio::buffer(bytes), error);
    return sent;
  }

 private:
  boost::asio::io_context io_;
  tcp::socket socket_;
  error_code error_;
};

class FaultProxyTest : public testing::Test {
 protected:
  std::unique_ptr<ProxyThread> Proxy(const std::string& command = "restore") {
    auto proxy = ProxyThread::Start({.target = server_.address()});
    EXPECT_TRUE(proxy.ok()) << proxy.status();
    EXPECT_EQ((*proxy)->Command(command), absl::OkStatus());
    return *std::move(proxy);
  }

  // Returns after bytes that are not held have passed a proxy.
  void LetOtherBytesPass(const std::string& address) {
    TestConnection other(address);
    other.Send("later");
    EXPECT_EQ(other.Receive(5), "later");
  }

  EchoServer server_;
};

TEST_F(FaultProxyTest, BytesPassInBothDirections) {
  const auto proxy = Proxy("slice 1400");
  TestConnection client(proxy->address());
  std::string sent(3 << 20, '\0');
  for (size_t i = 0; i < sent.size(); ++i) sent[i] = static_cast<char>(i * 7 + i / 255);
  std::thread sender([&] { client.Send(sent); });
  EXPECT_TRUE(client.Receive(sent.size()) == sent);
  sender.join();
  // The end of the connection passes after the proxy has counted all bytes.
  client.CloseSending();
  EXPECT_EQ(client.Receive(1), "");
  const ProxyCounts expected = {
      .connection_count = 1, .up_bytes = sent.size(), .down_bytes = sent.size()};
  EXPECT_EQ(proxy->counts(), expected);
}

TEST_F(FaultProxyTest, TheEndOfAConnectionPassesAfterItsBytes) {
  const auto proxy = Proxy("latency 5ms");
  TestConnection client(proxy->address());
  client.Send("last");
  client.CloseSending();
  EXPECT_EQ(client.Receive(100), "last");
  EXPECT_EQ(client.error(), boost::asio::error::eof);
}

TEST_F(FaultProxyTest, ALimitedLinkPassesAllBytes) {
  const auto proxy = Proxy("bandwidth 100Mbit");
  TestConnection client(proxy->address());
  const std::string sent(500000, 'b');
  std::thread sender([&] { client.Send(sent); });
  EXPECT_TRUE(client.Receive(sent.size()) == sent);
  sender.join();
}

TEST_F(FaultProxyTest, LatencyDelaysBytes) {
  const auto slow = Proxy("latency 1h");
  const auto fast = Proxy();
  TestConnection client(slow->address());
  client.Send("a");
  LetOtherBytesPass(fast->address());
  EXPECT_EQ(server_.received_bytes(), 5);
  EXPECT_EQ(slow->Command("latency 0s"), absl::OkStatus());
  EXPECT_EQ(client.Receive(1), "a");
}

TEST_F(FaultProxyTest, BandwidthLimitsBytes) {
  const auto slow = Proxy("bandwidth 1kbit");
  const auto fast = Proxy();
  TestConnection client(slow->address());
  client.Send(std::string(100000, 'a'));  // takes 800 s
  LetOtherBytesPass(fast->address());
  EXPECT_LT(server_.received_bytes(), 100000);
  EXPECT_EQ(slow->Command("bandwidth unlimited"), absl::OkStatus());
  EXPECT_EQ(client.Receive(100000), std::string(100000, 'a'));
}

TEST_F(FaultProxyTest, ABusyConnectionDoesNotBlockAnother) {
  const auto proxy = Proxy("bandwidth 1Mbit");
  TestConnection busy(proxy->address());
  const size_t queued = busy.SendUntilFull();
  LetOtherBytesPass(proxy->address());
  EXPECT_LT(server_.received_bytes(), queued);
}

TEST_F(FaultProxyTest, ACutUpHoldsBytesToTheTarget) {
  const auto cut = Proxy();
  const auto whole = Proxy();
  TestConnection client(cut->address());
  client.Send("1");
  EXPECT_EQ(client.Receive(1), "1");
  EXPECT_EQ(cut->Command("cut up"), absl::OkStatus());
  client.Send("2");
  LetOtherBytesPass(whole->address());
  EXPECT_EQ(server_.received_bytes(), 6);
  EXPECT_EQ(cut->Command("restore"), absl::OkStatus());
  EXPECT_EQ(client.Receive(1), "2");
}

TEST_F(FaultProxyTest, ACutDownHoldsBytesFromTheTarget) {
  const auto cut = Proxy();
  const auto whole = Proxy();
  TestConnection client(cut->address());
  client.Send("1");
  EXPECT_EQ(client.Receive(1), "1");
  EXPECT_EQ(cut->Command("cut down"), absl::OkStatus());
  client.Send("2");
  server_.WaitForBytes(2);
  LetOtherBytesPass(whole->address());
  EXPECT_EQ(client.available(), 0);
  EXPECT_EQ(cut->Command("restore"), absl::OkStatus());
  EXPECT_EQ(client.Receive(1), "2");
}

TEST_F(FaultProxyTest, ACutHoldsNewConnectionsAndEnds) {
  const auto cut = Proxy();
  const auto whole = Proxy();
  auto ending = std::make_unique<TestConnection>(cut->address());
  ending->Send("1");
  EXPECT_EQ(ending->Receive(1), "1");
  EXPECT_EQ(cut->Command("cut both"), absl::OkStatus());
  ending.reset();
  TestConnection beginning(cut->address());
  beginning.Send("2");
  LetOtherBytesPass(whole->address());
  server_.WaitForEnds(1);  // the connection of LetOtherBytesPass
  EXPECT_EQ(server_.end_count(), 1);
  EXPECT_EQ(server_.received_bytes(), 6);
  EXPECT_EQ(cut->Command("restore"), absl::OkStatus());
  EXPECT_EQ(beginning.Receive(1), "2");
  server_.WaitForEnds(2);
}

TEST_F(FaultProxyTest, ASenderBehindACutIsHeldBack) {
  const auto proxy = Proxy();
  TestConnection client(proxy->address());
  client.Send("1");
  EXPECT_EQ(client.Receive(1), "1");
  EXPECT_EQ(proxy->Command("cut up"), absl::OkStatus());
  size_t sent = 0;
  // The proxy reads until its queue is full, so the connection may accept bytes several times.
  for (size_t more = 1; more > 0; sent += more) more = client.SendUntilFull();
  EXPECT_GT(sent, 0);
  EXPECT_LT(sent, 64 << 20);
}

TEST_F(FaultProxyTest, AResetReachesBothPeers) {
  const auto proxy = Proxy();
  TestConnection client(proxy->address());
  client.Send("1");
  EXPECT_EQ(client.Receive(1), "1");
  EXPECT_EQ(proxy->Command("reset"), absl::OkStatus());
  EXPECT_EQ(client.Receive(1), "");
  EXPECT_EQ(client.error(), boost::asio::error::connection_reset);
  server_.WaitForEnds(1);
  EXPECT_EQ(proxy->counts().reset_count, 1);
  LetOtherBytesPass(proxy->address());
}

TEST_F(FaultProxyTest, RandomResetsResetConnections) {
  const auto proxy = Proxy("reset_rate 1000");  // a connection survives a tick with e^-100
  TestConnection client(proxy->address());
  EXPECT_EQ(client.Receive(1), "");
  EXPECT_EQ(client.error(), boost::asio::error::connection_reset);
  EXPECT_EQ(proxy->counts().reset_count, 1);
}

TEST_F(FaultProxyTest, HalfOpenConnectionsAreSilentUntilTheyAreReset) {
  const auto proxy = Proxy();
  const auto whole = Proxy();
  TestConnection old(proxy->address());
  old.Send("1");
  EXPECT_EQ(old.Receive(1), "1");
  EXPECT_EQ(proxy->Command("half-open"), absl::OkStatus());
  TestConnection fresh(proxy->address());
  const std::string more(20 << 20, 'x');  // more than all buffers hold
  fresh.Send(more);
  old.Send(more);
  LetOtherBytesPass(whole->address());
  EXPECT_EQ(server_.received_bytes(), 6);
  EXPECT_EQ(proxy->Command("restore"), absl::OkStatus());
  for (TestConnection* connection : {&old, &fresh}) {
    EXPECT_EQ(connection->Receive(1), "");
    EXPECT_EQ(connection->error(), boost::asio::error::connection_reset);
  }
  LetOtherBytesPass(proxy->address());
}

TEST_F(FaultProxyTest, AnUnreachableTargetResetsTheClient) {
  const auto proxy = ProxyThread::Start({.target = "127.0.0.1:1"});
  ASSERT_TRUE(proxy.ok()) << proxy.status();
  TestConnection client((*proxy)->address());
  EXPECT_EQ(client.Receive(1), "");
  EXPECT_EQ(client.error(), boost::asio::error::connection_reset);
}

TEST_F(FaultProxyTest, AWrongAddressIsNamed) {
  const auto error = [](const ProxyOptions& options) {
    return std::string(ProxyThread::Start(options).status().message());
  };
  EXPECT_THAT(error({.target = "here"}),
              HasSubstr("--to: wrong value (expected host:port, got \"here\")"));
  EXPECT_THAT(error({.listen = "127.0.0.1:", .target = "127.0.0.1:1"}),
              HasSubstr("--listen: wrong value (expected host:port, got \"127.0.0.1:\")"));
  EXPECT_THAT(error({.listen = server_.address(), .target = "127.0.0.1:1"}),
              HasSubstr("--listen: cannot listen on 127.0.0.1:"));
}

}  // namespace
}  // namespace thinwire

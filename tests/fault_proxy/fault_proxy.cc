#include "tests/fault_proxy/fault_proxy.h"

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cmath>
#include <deque>
#include <random>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/status_macros.h"

namespace thinwire {
namespace {

using boost::asio::steady_timer;
using boost::asio::ip::tcp;
using boost::system::error_code;

// Small socket buffers make a slow link visible to the sender early.
constexpr int kSocketBufferBytes = 256 << 10;
// The most bytes in the queue of one direction of one connection.
constexpr size_t kMaxQueuedBytes = 4 << 20;
constexpr absl::Duration kTick = absl::Milliseconds(100);

absl::Time Now() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

// Parses host:port and resolves the host.
absl::StatusOr<tcp::endpoint> Resolve(boost::asio::io_context& io, const std::string& flag,
                                      const std::string& address) {
  const size_t colon = address.rfind(':');
  tcp::resolver resolver(io);
  error_code error;
  if (colon != std::string::npos && colon + 1 < address.size()) {
    const auto found = resolver.resolve(address.substr(0, colon), address.substr(colon + 1), error);
    if (!error && !found.empty()) return found.begin()->endpoint();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(flag, ": wrong value (expected host:port, got \"", address, "\"",
                   error ? absl::StrCat(": ", error.message()) : "", ")"));
}

// The state that all connections of a proxy share.
struct Wire {
  tcp::endpoint target;
  WireFaults faults;
  Link up;
  Link down;
  ProxyCounts counts;
};

// One forwarded connection. Handlers of pending operations own the connection, so it lives until
// all of them have run.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(boost::asio::io_context& io, Wire& wire, tcp::socket client)
      : wire_(wire),
        client_(std::move(client)),
        server_(io),
        up_(io, client_, server_, wire.up, wire.faults.cut_up, wire.counts.up_bytes),
        down_(io, server_, client_, wire.down, wire.faults.cut_down, wire.counts.down_bytes) {}

  bool closed() const { return closed_; }

  // Continues according to the changed faults. Must also be called once after the construction.
  void ApplyFaults() {
    if (closed_) return;
    if (discards_ && !wire_.faults.half_open) return InjectReset();
    discards_ = wire_.faults.half_open;
    if (!discards_) Connect();
    for (Pump* pump : {&up_, &down_}) {
      Deliver(*pump);
      Read(*pump);
    }
  }

  // Continues according to the changed latency and bandwidth.
  void ApplySpeed() {
    for (Pump* pump : {&up_, &down_}) {
      for (Slice& slice : pump->queue) {
        slice.due = std::min(slice.due, Now() + wire_.faults.latency);
      }
      pump->link_timer.cancel();
      pump->due_timer.cancel();
      Deliver(*pump);
    }
  }

  // Resets the connection as a fault.
  void InjectReset() {
    if (closed_) return;
    ++wire_.counts.reset_count;
    Close(/*reset=*/true);
  }

  void Close(bool reset) {
    if (closed_) return;
    closed_ = true;
    for (tcp::socket* socket : {&client_, &server_}) {
      error_code ignored;
      if (reset) socket->set_option(boost::asio::socket_base::linger(true, 0), ignored);
      socket->close(ignored);
    }
    for (Pump* pump : {&up_, &down_}) {
      pump->link_timer.cancel();
      pump->due_timer.cancel();
    }
  }

 private:
  // The event after the bytes of a slice.
  enum class End { kNone, kClosed, kReset };

  struct Slice {
    std::string bytes;
    End end = End::kNone;
    absl::Time due;  // the time at which the slice arrives
  };

  // One direction.
  struct Pump {
    Pump(boost::asio::io_context& io, tcp::socket& from, tcp::socket& to, Link& link,
         const bool& cut, uint64_t& byte_count)
        : from(from),
          to(to),
          link(link),
          cut(cut),
          byte_count(byte_count),
          link_timer(io),
          due_timer(io) {}

    tcp::socket& from;
    tcp::socket& to;
    Link& link;
    const bool& cut;
    uint64_t& byte_count;
    steady_timer link_timer;  // expires when the link has sent the newest slice
    steady_timer due_timer;   // expires when the oldest slice arrives
    std::vector<char> buffer;
    std::deque<Slice> queue;
    size_t queued_bytes = 0;
    bool reading = false;
    bool link_busy = false;
    bool writing = false;
    bool ended = false;      // nothing more can be read
    bool delivered = false;  // the end was delivered
  };

  void Connect() {
    if (connecting_ || up_.cut || down_.cut) return;
    connecting_ = true;
    error_code ignored;
    server_.open(wire_.target.protocol(), ignored);
    server_.set_option(boost::asio::socket_base::receive_buffer_size(kSocketBufferBytes), ignored);
    server_.async_connect(wire_.target, [this, self = shared_from_this()](error_code error) {
      if (closed_) return;
      if (error) return Close(/*reset=*/true);
      connected_ = true;
      for (tcp::socket* socket : {&client_, &server_}) {
        error_code ignored;
        socket->set_option(tcp::no_delay(true), ignored);
      }
      Read(up_);
      Read(down_);
    });
  }

  void Read(Pump& pump) {
    const bool full = pump.link_busy || pump.queued_bytes >= kMaxQueuedBytes;
    if (closed_ || pump.reading || pump.ended || (full && !discards_)) return;
    if (!connected_ && !(discards_ && &pump == &up_)) return;
    pump.reading = true;
    pump.buffer.resize(wire_.faults.slice_bytes);
    pump.from.async_read_some(
        boost::asio::buffer(pump.buffer),
        [this, self = shared_from_this(), &pump](error_code error, size_t size) {
          pump.reading = false;
          if (!closed_) OnRead(pump, error, size);
        });
  }

  void OnRead(Pump& pump, error_code error, size_t size) {
    const absl::Time now = Now();
    if (error) {
      pump.ended = true;
      const End end = error == boost::asio::error::eof ? End::kClosed : End::kReset;
      pump.queue.push_back({"", end, now + wire_.faults.latency});
      return Deliver(pump);
    }
    if (discards_) return Read(pump);
    const absl::Time departure = pump.link.Depart(now, size, wire_.faults.bits_per_second);
    pump.queue.push_back(
        {std::string(pump.buffer.data(), size), End::kNone, departure + wire_.faults.latency});
    pump.queued_bytes += size;
    Deliver(pump);
    if (departure <= now) return Read(pump);
    pump.link_busy = true;
    pump.link_timer.expires_after(absl::ToChronoNanoseconds(departure - now));
    // ApplySpeed cancels the timer to end the wait early.
    pump.link_timer.async_wait([this, self = shared_from_this(), &pump](error_code) {
      pump.link_busy = false;
      Read(pump);
    });
  }

  // Writes the oldest slice if it has arrived.
  void Deliver(Pump& pump) {
    if (closed_ || discards_ || pump.cut || pump.writing || pump.queue.empty()) return;
    const Slice& slice = pump.queue.front();
    const absl::Duration wait = slice.due - Now();
    if (wait > absl::ZeroDuration()) {
      pump.due_timer.expires_after(absl::ToChronoNanoseconds(wait));
      pump.due_timer.async_wait([this, self = shared_from_this(), &pump](error_code error) {
        if (!error) Deliver(pump);
      });
      return;
    }
    if (slice.end == End::kReset) return Close(/*reset=*/true);
    if (slice.end == End::kClosed) return DeliverClose(pump);
    pump.writing = true;
    boost::asio::async_write(pump.to, boost::asio::buffer(slice.bytes),
                             [this, self = shared_from_this(), &pump](error_code error, size_t) {
                               pump.writing = false;
                               if (!closed_) OnWritten(pump, error);
                             });
  }

  void DeliverClose(Pump& pump) {
    pump.queue.pop_front();
    pump.delivered = true;
    error_code ignored;
    pump.to.shutdown(tcp::socket::shutdown_send, ignored);
    if (OtherThan(pump).delivered) Close(/*reset=*/false);
  }

  void OnWritten(Pump& pump, error_code error) {
    if (!error) {
      pump.byte_count += pump.queue.front().bytes.size();
      pump.queued_bytes -= pump.queue.front().bytes.size();
      pump.queue.pop_front();
      Read(pump);
      return Deliver(pump);
    }
    // The receiver is gone. The other direction tells the sender: by the error of its pending read,
    // or by this reset if it has read the receiver's end before.
    pump.ended = pump.delivered = true;
    pump.queue.clear();
    Pump& other = OtherThan(pump);
    if (!other.ended) return;
    other.queue.push_back({"", End::kReset, Now() + wire_.faults.latency});
    Deliver(other);
  }

  Pump& OtherThan(const Pump& pump) { return &pump == &up_ ? down_ : up_; }

  Wire& wire_;
  tcp::socket client_;
  tcp::socket server_;
  Pump up_;
  Pump down_;
  bool connecting_ = false;
  bool connected_ = false;
  bool discards_ = false;  // the connection is half-open
  bool closed_ = false;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const ProxyCounts& counts) {
  return out << "connections " << counts.connection_count << ", resets " << counts.reset_count
             << ", bytes up " << counts.up_bytes << ", bytes down " << counts.down_bytes;
}

// The pending handlers of `acceptor` and `tick_timer` own the state.
struct FaultProxy::State : std::enable_shared_from_this<State> {
  State(boost::asio::io_context& io, uint64_t seed)
      : io(io), acceptor(io), tick_timer(io), random(seed) {}

  void Accept() {
    acceptor.async_accept([this, self = shared_from_this()](error_code error, tcp::socket socket) {
      if (!acceptor.is_open()) return;
      accepting = !error;
      if (error) return;  // for example too many open files; Tick tries again
      ++wire.counts.connection_count;
      connections.push_back(std::make_shared<Connection>(io, wire, std::move(socket)));
      connections.back()->ApplyFaults();
      Accept();
    });
  }

  void Tick() {
    tick_timer.expires_after(absl::ToChronoNanoseconds(kTick));
    tick_timer.async_wait([this, self = shared_from_this()](error_code error) {
      if (error) return;
      ResetSome();
      std::erase_if(connections, [](const auto& connection) { return connection->closed(); });
      if (!std::exchange(accepting, true)) Accept();
      Tick();
    });
  }

  void ResetSome() {
    const double probability = 1 - std::exp(-wire.faults.reset_rate * absl::ToDoubleSeconds(kTick));
    std::bernoulli_distribution draw(probability);
    for (const auto& connection : connections) {
      if (draw(random)) connection->InjectReset();
    }
  }

  boost::asio::io_context& io;
  Wire wire;
  tcp::acceptor acceptor;
  bool accepting = true;
  steady_timer tick_timer;
  std::mt19937_64 random;
  std::string address;
  std::vector<std::shared_ptr<Connection>> connections;
};

absl::StatusOr<std::unique_ptr<FaultProxy>> FaultProxy::Start(boost::asio::io_context& io,
                                                              const ProxyOptions& options) {
  ASSIGN_OR_RETURN(const tcp::endpoint listen, Resolve(io, "--listen", options.listen));
  const auto state = std::make_shared<State>(io, options.seed);
  ASSIGN_OR_RETURN(state->wire.target, Resolve(io, "--to", options.target));
  state->wire.faults = options.faults;
  tcp::acceptor& acceptor = state->acceptor;
  error_code error;
  acceptor.open(listen.protocol(), error);
  if (!error) acceptor.set_option(tcp::acceptor::reuse_address(true), error);
  // Accepted sockets inherit this size.
  if (!error) {
    acceptor.set_option(boost::asio::socket_base::receive_buffer_size(kSocketBufferBytes), error);
  }
  if (!error) acceptor.bind(listen, error);
  if (!error) acceptor.listen(boost::asio::socket_base::max_listen_connections, error);
  if (error) {
    return absl::UnavailableError(
        absl::StrCat("--listen: cannot listen on ", options.listen, ": ", error.message()));
  }
  const size_t colon = options.listen.rfind(':');
  state->address =
      absl::StrCat(options.listen.substr(0, colon), ":", acceptor.local_endpoint(error).port());
  state->Accept();
  state->Tick();
  return std::unique_ptr<FaultProxy>(new FaultProxy(state));
}

FaultProxy::~FaultProxy() {
  error_code ignored;
  state_->acceptor.close(ignored);
  state_->tick_timer.cancel();
  for (const auto& connection : state_->connections) connection->Close(/*reset=*/false);
}

absl::Status FaultProxy::Command(std::string_view command) {
  if (command == "reset") {
    for (const auto& connection : state_->connections) connection->InjectReset();
    return absl::OkStatus();
  }
  Wire& wire = state_->wire;
  const WireFaults before = wire.faults;
  RETURN_IF_ERROR(wire.faults.Apply(command));
  if (before.latency != wire.faults.latency ||
      before.bits_per_second != wire.faults.bits_per_second) {
    wire.up = wire.down = Link();
    for (const auto& connection : state_->connections) connection->ApplySpeed();
  }
  for (const auto& connection : state_->connections) connection->ApplyFaults();
  return absl::OkStatus();
}

const std::string& FaultProxy::address() const { return state_->address; }
const ProxyCounts& FaultProxy::counts() const { return state_->wire.counts; }

}  // namespace thinwire

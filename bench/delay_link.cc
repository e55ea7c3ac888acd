// delay_link is a switch whose links have a round trip time and a rate. It carries the IP packets of
// hosts that are network namespaces, so the TCP of the kernel is at both ends of every connection:
// slow start, windows and retransmissions are real, which a proxy would hide.
//
//   delay_link ROUND_TRIP_MS MBIT QUEUE_MS LOSS NAMESPACE...
//
// In each namespace it creates the TUN device eth0 for the host with the address 10.77.0.N, where N
// is the position of the namespace in the arguments, from 1. The caller configures the devices. A
// packet waits in the queue of the sender's link, travels for half of ROUND_TRIP_MS, waits in the
// queue of the receiver's link, and arrives. MBIT is the rate of every link in each direction; 0: no
// limit. A packet is dropped if a queue would take longer than QUEUE_MS to send it, and with the
// probability LOSS on its way. Prints "ready", and at SIGTERM the numbers of carried and dropped
// packets.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>
#include <queue>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace thinwire {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

volatile std::sig_atomic_t stopped = 0;

// One direction of a host's link.
class Queue {
 public:
  // Returns the time at which a packet that arrives at NOW has left the queue; nullopt if it is
  // dropped. RATE is in bits per second; 0: no limit.
  std::optional<Clock::time_point> Pass(size_t bytes, Clock::time_point now, double rate,
                                        Seconds longest_wait) {
    if (rate == 0) return now;
    free_ = std::max(free_, now);
    if (free_ - now > longest_wait) return std::nullopt;
    free_ += std::chrono::duration_cast<Clock::duration>(Seconds(8.0 * bytes / rate));
    return free_;
  }

 private:
  Clock::time_point free_;
};

struct Packet {
  Clock::time_point at;
  uint64_t order;  // packets of the same time keep their order
  size_t to;
  bool arrived;  // has passed the queue of the receiver's link
  std::string bytes;

  bool operator<(const Packet& other) const {  // the earliest packet is the top of a priority_queue
    return std::pair(at, order) > std::pair(other.at, other.order);
  }
};

// Returns the descriptor of a new TUN device eth0 in a namespace, or -1 after a message.
int OpenDevice(const char* name) {
  const int space = open(absl::StrCat("/run/netns/", name).c_str(), O_RDONLY);
  if (space < 0 || setns(space, CLONE_NEWNET) != 0) {
    std::perror(absl::StrCat("delay_link: ", name).c_str());
    return -1;
  }
  close(space);
  const int device = open("/dev/net/tun", O_RDWR | O_NONBLOCK);
  ifreq request = {};
  request.ifr_flags = IFF_TUN | IFF_NO_PI;
  std::strncpy(request.ifr_name, "eth0", IFNAMSIZ - 1);
  if (device < 0 || ioctl(device, TUNSETIFF, &request) != 0) {
    std::perror("delay_link: /dev/net/tun");
    return -1;
  }
  return device;
}

int Run(Seconds one_way, double rate, Seconds longest_wait, double loss,
        const std::vector<int>& devices) {
  std::minstd_rand random;
  std::bernoulli_distribution lost(loss);
  std::vector<Queue> up(devices.size()), down(devices.size());
  std::priority_queue<Packet> packets;
  uint64_t carried = 0, dropped = 0, order = 0;
  std::vector<pollfd> polls;
  for (const int device : devices) polls.push_back({device, POLLIN, 0});
  std::vector<char> buffer(65536);
  const auto travel = std::chrono::duration_cast<Clock::duration>(one_way);
  const auto add = [&](Clock::time_point at, size_t to, bool arrived, std::string bytes) {
    packets.push({at, order++, to, arrived, std::move(bytes)});
  };
  while (stopped == 0) {
    Clock::duration wait = std::chrono::seconds(1);
    if (!packets.empty()) {
      wait = std::clamp(packets.top().at - Clock::now(), Clock::duration(0), wait);
    }
    const timespec timeout = {std::chrono::duration_cast<std::chrono::seconds>(wait).count(),
                              wait.count() % 1'000'000'000};
    ppoll(polls.data(), polls.size(), &timeout, nullptr);
    for (size_t host = 0; host < devices.size(); ++host) {
      for (int burst = 0; burst < 64; ++burst) {
        const ssize_t count = read(devices[host], buffer.data(), buffer.size());
        if (count <= 0) break;
        // Only IPv4 packets to the hosts are carried: byte 0 has the version, bytes 16 to 19 the
        // destination.
        if (count < 20 || buffer[0] >> 4 != 4) continue;
        const size_t to = static_cast<uint8_t>(buffer[19]) - size_t{1};
        if (to >= devices.size()) continue;
        const Clock::time_point now = Clock::now();
        const auto sent = up[host].Pass(count, now, rate, longest_wait);
        if (sent.has_value() && !lost(random)) {
          add(*sent + travel, to, false, std::string(buffer.data(), count));
        } else {
          ++dropped;
        }
      }
    }
    const Clock::time_point now = Clock::now();
    while (!packets.empty() && packets.top().at <= now) {
      Packet packet = packets.top();
      packets.pop();
      if (packet.arrived) {
        ++carried;
        if (write(devices[packet.to], packet.bytes.data(), packet.bytes.size()) < 0) ++dropped;
        continue;
      }
      const auto end = down[packet.to].Pass(packet.bytes.size(), packet.at, rate, longest_wait);
      if (end.has_value()) {
        add(*end, packet.to, true, std::move(packet.bytes));
      } else {
        ++dropped;
      }
    }
  }
  std::printf("carried %ju dropped %ju\n", carried, dropped);
  return 0;
}

int Main(int argc, char** argv) {
  double round_trip_ms = 0, mbit = 0, queue_ms = 0, loss = 0;
  if (argc < 7 || !absl::SimpleAtod(argv[1], &round_trip_ms) || !absl::SimpleAtod(argv[2], &mbit) ||
      !absl::SimpleAtod(argv[3], &queue_ms) || !absl::SimpleAtod(argv[4], &loss) || loss < 0 ||
      loss >= 1) {
    std::fputs(
        "delay_link: wrong arguments (expected ROUND_TRIP_MS MBIT QUEUE_MS LOSS, a probability, "
        "and "
        "two or more namespaces)\n",
        stderr);
    return 64;
  }
  std::vector<int> devices;
  for (int i = 5; i < argc; ++i) {
    devices.push_back(OpenDevice(argv[i]));
    if (devices.back() < 0) return 69;
  }
  std::signal(
      SIGTERM, +[](int) { stopped = 1; });
  std::puts("ready");
  std::fflush(stdout);
  return Run(Seconds(round_trip_ms / 2e3), mbit * 1e6, Seconds(queue_ms / 1e3), loss, devices);
}

}  // namespace
}  // namespace thinwire

int main(int argc, char** argv) { return thinwire::Main(argc, argv); }

#include "sim/link_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/mix_bits.h"

namespace thinwire::sim {
namespace {

constexpr double kMegabit = 1e6;
constexpr uint64_t kMegabitBytes = 125000;

// A network and the arrival times of its messages, in the order of their arrivals.
struct Wire {
  explicit Wire(std::vector<LinkSpec> links) : network(std::move(links), queue) {}

  void Send(size_t from, size_t to, uint64_t bytes) {
    const int message = message_count++;
    network.Send(from, to, bytes, [this, message] {
      arrivals.push_back({message, absl::ToDoubleSeconds(queue.elapsed())});
    });
  }
  void SendAt(double seconds, size_t from, size_t to, uint64_t bytes) {
    queue.At(absl::Seconds(seconds), [this, from, to, bytes] { Send(from, to, bytes); });
  }
  std::vector<std::pair<int, double>> Run() {
    while (!queue.empty()) queue.RunNext();
    return arrivals;
  }

  VirtualTime queue;
  LinkModel network;
  int message_count = 0;
  std::vector<std::pair<int, double>> arrivals;  // number of the message, seconds
};

using Arrivals = std::vector<std::pair<int, double>>;

// Links of 1 Mbit/s without latency.
std::vector<LinkSpec> Links(size_t machines) {
  return std::vector<LinkSpec>(machines, {.bits_per_second = kMegabit});
}

TEST(LinkModelTest, AMessageTakesItsBitsOverTheRateAndBothLatencies) {
  Wire wire({{kMegabit, absl::Milliseconds(20)}, {4 * kMegabit, absl::Milliseconds(5)}});
  wire.Send(0, 1, 2 * kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 2.025}}));
  EXPECT_EQ(wire.network.sent_bytes(0), 2 * kMegabitBytes);
  EXPECT_EQ(wire.network.sent_bytes(1), 0);
}

TEST(LinkModelTest, TheDistanceOfTheSitesIsAdded) {
  VirtualTime queue;
  const absl::Duration far = absl::Milliseconds(110);
  LinkModel network({{}, {.latency = absl::Milliseconds(5)}, {}}, queue,
                    {.of_machine = {0, 1, 1},
                     .distance = {{absl::ZeroDuration(), far}, {far, absl::ZeroDuration()}}});
  std::vector<double> arrivals;
  const auto send = [&](size_t from, size_t to) {
    network.Send(from, to, 1, [&] { arrivals.push_back(absl::ToDoubleSeconds(queue.elapsed())); });
  };
  send(0, 1);
  send(2, 0);
  send(1, 2);
  while (!queue.empty()) queue.RunNext();
  EXPECT_EQ(arrivals, (std::vector<double>{0.005, 0.110, 0.115}));
}

TEST(LinkModelTest, TheSlowerOfTwoLinksLimitsAMessage) {
  Wire wire({{4 * kMegabit}, {kMegabit}});
  wire.Send(0, 1, kMegabitBytes);
  wire.Send(1, 0, kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 1}, {1, 1}}));
}

TEST(LinkModelTest, MessagesOfOnePairArriveInOrder) {
  Wire wire(Links(2));
  wire.Send(0, 1, kMegabitBytes);
  wire.Send(0, 1, 0);
  wire.Send(0, 1, kMegabitBytes / 2);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 1}, {1, 1}, {2, 1.5}}));
}

TEST(LinkModelTest, TwoReceiversShareTheLinkOfTheSender) {
  Wire wire(Links(3));
  wire.Send(0, 1, kMegabitBytes);
  wire.Send(0, 2, 2 * kMegabitBytes);
  // After 2 s, the second message has the link to itself.
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 2}, {1, 3}}));
}

TEST(LinkModelTest, ALaterMessageSharesFromItsStartOn) {
  Wire wire(Links(3));
  wire.SendAt(0, 0, 2, kMegabitBytes);
  wire.SendAt(0.5, 1, 2, kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 1.5}, {1, 2}}));
}

TEST(LinkModelTest, BothDirectionsOfALinkHaveTheWholeBandwidth) {
  Wire wire(Links(2));
  wire.Send(0, 1, kMegabitBytes);
  wire.Send(1, 0, kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 1}, {1, 1}}));
}

TEST(LinkModelTest, OneBandwidthOfZeroLeavesTheOtherLinkAsTheLimit) {
  Wire wire({{0, absl::Milliseconds(1)}, {kMegabit, absl::Milliseconds(1)}});
  wire.Send(0, 1, kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 1.002}}));
}

TEST(LinkModelTest, MessagesBetweenUnlimitedLinksTakeTheLatency) {
  Wire wire({{0, absl::Milliseconds(1)}, {0, absl::Milliseconds(2)}});
  wire.Send(0, 1, 1'000'000'000);
  wire.Send(0, 1, 1'000'000'000);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 0.003}, {1, 0.003}}));
  EXPECT_EQ(wire.network.sent_bytes(0), 2'000'000'000);
}

TEST(LinkModelTest, AMessageToTheSameMachineTakesNoTime) {
  Wire wire({{kMegabit, absl::Seconds(1)}});
  wire.Send(0, 0, kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 0}}));
  EXPECT_EQ(wire.network.sent_bytes(0), 0);
}

TEST(LinkModelTest, BandwidthThatASlowReceiverCannotUseGoesToTheOthers) {
  // The sender has 10 Mbit/s. The slow receiver takes 1 Mbit/s, and the two others 4.5 Mbit/s each.
  Wire wire({{10 * kMegabit}, {kMegabit}, {10 * kMegabit}, {10 * kMegabit}});
  wire.Send(0, 1, kMegabitBytes);
  wire.Send(0, 2, 9 * kMegabitBytes / 2);
  wire.Send(0, 3, 9 * kMegabitBytes / 2);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 1}, {1, 1}, {2, 1}}));
}

TEST(LinkModelTest, BandwidthThatAMessageLosesAtItsReceiverGoesToTheOthersOfItsSender) {
  // Machine 0 sends to 3 and 4; machines 1 and 2 send to 3 too. The three messages to machine 3 get
  // a third each, so the message to machine 4 gets two thirds.
  Wire wire(Links(5));
  wire.Send(0, 3, kMegabitBytes);
  wire.Send(1, 3, kMegabitBytes);
  wire.Send(2, 3, kMegabitBytes);
  wire.Send(0, 4, 2 * kMegabitBytes);
  EXPECT_EQ(wire.Run(), (Arrivals{{0, 3}, {1, 3}, {2, 3}, {3, 3}}));
}

TEST(LinkModelTest, ARingIsAsFastAsOneMessage) {
  constexpr size_t kMachines = 64;
  Wire wire(Links(kMachines));
  for (size_t i = 0; i < kMachines; ++i) wire.Send(i, (i + 1) % kMachines, kMegabitBytes);
  const Arrivals arrivals = wire.Run();
  ASSERT_EQ(arrivals.size(), kMachines);
  for (const auto& [message, seconds] : arrivals) EXPECT_EQ(seconds, 1) << message;
}

TEST(LinkModelTest, AnIncastOfManyShareTheReceiversLink) {
  constexpr size_t kSenders = 10'000;
  Wire wire(Links(kSenders + 1));
  for (size_t i = 0; i < kSenders; ++i) wire.Send(i, kSenders, kMegabitBytes);
  const Arrivals arrivals = wire.Run();
  ASSERT_EQ(arrivals.size(), kSenders);
  for (const auto& [message, seconds] : arrivals) ASSERT_EQ(seconds, kSenders) << message;
}

TEST(LinkModelTest, ManyMessagesOfDifferentSizesEndInTheOrderOfTheirSizes) {
  // Message i of n has i Mbit. It ends when the messages up to i have sent i Mbit each, and the
  // larger ones as well: at i (i+1) / 2 + i (n-i) seconds.
  constexpr int kSenders = 10'000;
  Wire wire(Links(kSenders + 1));
  for (int i = 1; i <= kSenders; ++i) wire.Send(i - 1, kSenders, i * kMegabitBytes);
  const Arrivals arrivals = wire.Run();
  ASSERT_EQ(arrivals.size(), kSenders);
  for (int i = 1; i <= kSenders; ++i) {
    EXPECT_EQ(arrivals[i - 1].first, i - 1);
    const double expected = 0.5 * i * (i + 1.0) + i * (kSenders - static_cast<double>(i));
    ASSERT_NEAR(arrivals[i - 1].second, expected, 1e-4);
  }
}

TEST(LinkModelTest, EveryMachineToEveryOtherSharesEvenly) {
  constexpr size_t kMachines = 16;
  Wire wire(Links(kMachines));
  for (size_t from = 0; from < kMachines; ++from) {
    for (size_t to = 0; to < kMachines; ++to) {
      if (from != to) wire.Send(from, to, kMegabitBytes);
    }
  }
  const Arrivals arrivals = wire.Run();
  ASSERT_EQ(arrivals.size(), kMachines * (kMachines - 1));
  for (const auto& [message, seconds] : arrivals) EXPECT_EQ(seconds, kMachines - 1) << message;
}

TEST(LinkModelTest, MessagesOfOtherMachinesChangeNoTime) {
  const auto run = [](bool others) {
    Wire wire(Links(8));
    for (uint64_t i = 0; i < 300; ++i) {
      const double seconds = static_cast<double>(kernels::MixBits(i) % 100'000) * 1e-3;
      const uint64_t bytes = kernels::MixBits(1000 + i) % kMegabitBytes;
      const size_t from = kernels::MixBits(2000 + i) % 4;
      const size_t to = kernels::MixBits(3000 + i) % 4;
      wire.SendAt(seconds, from, to, bytes);
      if (others) wire.SendAt(seconds, 4 + to, 4 + from, bytes);
    }
    std::vector<double> times;
    // The messages are numbered in the order of their sends: with others, every second one is
    // first.
    for (const auto& [message, seconds] : wire.Run()) {
      if (!others || message % 2 == 0) times.push_back(seconds);
    }
    return times;
  };
  const std::vector<double> alone = run(false);
  EXPECT_EQ(alone.size(), 300);
  EXPECT_EQ(run(true), alone);
}

struct TestMessage {
  size_t from;
  size_t to;
  double bits;
  double start;
};

// Returns the rates of the messages for which OPEN is true, by the definition of max-min fairness:
// all rates rise together, and a message stops rising when one of its directions is full.
std::vector<double> FairRates(const std::vector<LinkSpec>& links,
                              const std::vector<TestMessage>& messages, std::vector<bool> open) {
  std::vector<double> rates(messages.size(), 0);
  const auto directions = [&](size_t i) {
    return std::array{2 * messages[i].from, 2 * messages[i].to + 1};
  };
  while (true) {
    std::vector<double> room(2 * links.size());
    std::vector<int> rising(2 * links.size(), 0);
    for (size_t d = 0; d < room.size(); ++d) room[d] = links[d / 2].bits_per_second;
    for (size_t i = 0; i < messages.size(); ++i) {
      for (const size_t d : directions(i)) {
        room[d] -= rates[i];
        rising[d] += open[i] ? 1 : 0;
      }
    }
    double raise = INFINITY;
    for (size_t d = 0; d < room.size(); ++d) {
      if (rising[d] > 0) raise = std::min(raise, room[d] / rising[d]);
    }
    if (raise == INFINITY) return rates;
    for (size_t i = 0; i < messages.size(); ++i) {
      if (!open[i]) continue;
      rates[i] += raise;
      for (const size_t d : directions(i)) {
        if (room[d] - raise * rising[d] < 1e-6) open[i] = false;
      }
    }
  }
}

// Returns the arrival time of each message. REQUIRES: no two messages have the same sender and
// receiver.
std::vector<double> FairTimes(const std::vector<LinkSpec>& links,
                              const std::vector<TestMessage>& messages) {
  std::vector<double> left;
  for (const TestMessage& message : messages) left.push_back(message.bits);
  std::vector<double> times(messages.size(), INFINITY);
  double now = 0;
  while (true) {
    std::vector<bool> open;
    double next = INFINITY;
    for (size_t i = 0; i < messages.size(); ++i) {
      open.push_back(messages[i].start <= now && times[i] == INFINITY);
      if (messages[i].start > now) next = std::min(next, messages[i].start);
    }
    const std::vector<double> rates = FairRates(links, messages, open);
    for (size_t i = 0; i < messages.size(); ++i) {
      if (open[i]) next = std::min(next, now + left[i] / rates[i]);
    }
    if (next == INFINITY) return times;
    for (size_t i = 0; i < messages.size(); ++i) {
      if (!open[i]) continue;
      left[i] -= rates[i] * (next - now);
      if (left[i] < 1e-3) times[i] = next;
    }
    now = next;
  }
}

TEST(LinkModelTest, RandomMessagesTakeTheTimesOfTheDefinition) {
  constexpr size_t kMachines = 6;
  int checked = 0;
  for (uint64_t round = 0; round < 100; ++round) {
    uint64_t draw = 1000 * round;
    const auto below = [&](uint64_t limit) { return kernels::MixBits(draw++) % limit; };
    std::vector<LinkSpec> links(kMachines);
    for (LinkSpec& link : links) {
      link.bits_per_second = kMegabit * static_cast<double>(1 + below(5));
    }
    // Few different sizes and starts, so that messages often start and end at the same time.
    std::vector<TestMessage> messages;
    for (size_t from = 0; from < kMachines; ++from) {
      for (size_t to = 0; to < kMachines; ++to) {
        if (from == to || below(3) == 0) continue;
        const uint64_t bytes = (1 + below(8)) * kMegabitBytes;
        messages.push_back(
            {from, to, 8.0 * static_cast<double>(bytes), static_cast<double>(below(10))});
      }
    }
    std::stable_sort(messages.begin(), messages.end(),
                     [](const TestMessage& a, const TestMessage& b) { return a.start < b.start; });
    Wire wire(links);
    for (const TestMessage& message : messages) {
      wire.SendAt(message.start, message.from, message.to, static_cast<uint64_t>(message.bits / 8));
    }
    const std::vector<double> expected = FairTimes(links, messages);
    for (const auto& [message, seconds] : wire.Run()) {
      EXPECT_NEAR(seconds, expected[message], 1e-6) << "round " << round;
      ++checked;
    }
  }
  EXPECT_GT(checked, 1500);
}

}  // namespace
}  // namespace thinwire::sim

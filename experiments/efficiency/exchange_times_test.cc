// Sends the messages of each algorithm through the virtual network and compares the time with the
// published formula.
#include "experiments/efficiency/exchange_times.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "experiments/cluster/links.h"

namespace thinwire::lab {
namespace {

// The constants of the paper. A value takes 36 ns, so all times are whole nanoseconds.
constexpr WireTimes kWire = {.alpha = 0.436e-3, .beta = 3.6e-8};
constexpr double kNanosecond = 1e-9;

struct Message {
  size_t from;
  size_t to;
  uint64_t values;
};

// Returns the time of rounds of messages. A machine begins a round when all messages of the round
// before that it sent or receives have arrived.
double SecondsOf(size_t machines, const std::vector<std::vector<Message>>& rounds) {
  VirtualTime queue;
  LinkModel network(std::vector<LinkSpec>(machines, {.bits_per_second = 32 / kWire.beta,
                                                     .latency = absl::Seconds(kWire.alpha / 2)}),
                    queue);
  std::vector<size_t> round_of(machines, 0);
  std::vector<std::vector<int>> missing(rounds.size() + 1, std::vector<int>(machines, 0));
  for (size_t round = 0; round < rounds.size(); ++round) {
    for (const Message& message : rounds[round]) {
      ++missing[round][message.from];
      ++missing[round][message.to];
    }
  }
  std::function<void(size_t)> begin_next;
  const auto begin = [&](size_t machine) {
    const size_t round = round_of[machine];
    if (round == rounds.size()) return;
    for (const Message& message : rounds[round]) {
      if (message.from != machine) continue;
      network.Send(machine, message.to, 4 * message.values, [&, round, message] {
        --missing[round][message.from];
        --missing[round][message.to];
        begin_next(message.from);
        begin_next(message.to);
      });
    }
  };
  begin_next = [&](size_t machine) {
    while (round_of[machine] < rounds.size() && missing[round_of[machine]][machine] == 0) {
      ++round_of[machine];
      begin(machine);
    }
  };
  for (size_t machine = 0; machine < machines; ++machine) {
    begin(machine);
    begin_next(machine);
  }
  while (!queue.empty()) queue.RunNext();
  for (const auto& by_machine : missing) {
    EXPECT_TRUE(std::ranges::all_of(by_machine, [](int count) { return count == 0; }));
  }
  return absl::ToDoubleSeconds(queue.elapsed());
}

class ExchangeTimesTest : public ::testing::TestWithParam<size_t> {};

TEST_P(ExchangeTimesTest, ARingTakesTheTimeOfTheDenseFormula) {
  const size_t workers = GetParam();
  const uint64_t values = 1000 * workers;
  std::vector<std::vector<Message>> rounds(2 * (workers - 1));
  for (auto& round : rounds) {
    for (size_t i = 0; i < workers; ++i) {
      round.push_back({i, (i + 1) % workers, values / workers});
    }
  }
  EXPECT_NEAR(SecondsOf(workers, rounds), DenseSeconds(kWire, workers, values), kNanosecond);
}

TEST_P(ExchangeTimesTest, RecursiveDoublingTakesTheTimeOfTheTopKFormula) {
  const size_t workers = GetParam();
  constexpr uint64_t kSelected = 1234;
  std::vector<std::vector<Message>> rounds;
  for (size_t distance = 1; distance < workers; distance *= 2) {
    auto& round = rounds.emplace_back();
    for (size_t i = 0; i < workers; ++i) {
      round.push_back({i, i ^ distance, 2 * kSelected * distance});
    }
  }
  EXPECT_NEAR(SecondsOf(workers, rounds), TopKSeconds(kWire, workers, kSelected), kNanosecond);
}

TEST_P(ExchangeTimesTest, ATreeTakesTheTimeOfTheGtopkFormula) {
  const size_t workers = GetParam();
  constexpr uint64_t kSelected = 1234;
  std::vector<std::vector<Message>> rounds;
  for (size_t distance = 1; distance < workers; distance *= 2) {
    auto& round = rounds.emplace_back();
    for (size_t i = 0; i < workers; i += 2 * distance) {
      round.push_back({i + distance, i, 2 * kSelected});
    }
  }
  for (size_t distance = workers / 2; distance > 0; distance /= 2) {
    auto& round = rounds.emplace_back();
    for (size_t i = 0; i < workers; i += 2 * distance) {
      round.push_back({i, i + distance, 2 * kSelected});
    }
  }
  EXPECT_NEAR(SecondsOf(workers, rounds), GtopkSeconds(kWire, workers, kSelected), kNanosecond);
}

INSTANTIATE_TEST_SUITE_P(Workers, ExchangeTimesTest, ::testing::Values(2, 4, 8, 16, 32));

// With 32 workers and the 270,000 values of ResNet-20, the formulas make gTop-k slower than Top-k.
TEST(ExchangeTimesOfSmallModelsTest, GtopkIsSlowerThanTopKForResNet20) {
  EXPECT_NEAR(GtopkSeconds(kWire, 32, 270), 4.55e-3, 0.005e-3);
  EXPECT_NEAR(TopKSeconds(kWire, 32, 270), 2.78e-3, 0.005e-3);
}

}  // namespace
}  // namespace thinwire::lab

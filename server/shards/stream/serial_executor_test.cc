#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/shards/stream/server_stream.h"

namespace thinwire {
namespace {

TEST(SerialExecutorTest, AnIdleExecutorRunsWorkAtOnce) {
  SerialExecutor serial;
  int ran = 0;
  serial.Run([&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

TEST(SerialExecutorTest, WorkAddedByWorkRunsAfterIt) {
  SerialExecutor serial;
  std::vector<int> order;
  serial.Run([&] {
    serial.Run([&] { order.push_back(2); });
    order.push_back(1);
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(SerialExecutorTest, WorkFromManyThreadsNeverOverlaps) {
  SerialExecutor serial;
  int count = 0;  // not atomic: the executor never runs two functions at once
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 5000; ++i) serial.Run([&] { ++count; });
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 20000);
}

}  // namespace
}  // namespace thinwire

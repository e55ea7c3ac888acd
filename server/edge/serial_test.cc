#include "server/edge/serial.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace thinwire {
namespace {

TEST(SerialTest, AnIdleOneRunsAtOnce) {
  Serial serial;
  int ran = 0;
  serial.Run([&] { ++ran; });
  EXPECT_EQ(ran, 1);
}

TEST(SerialTest, WorkBroughtByWorkRunsAfterIt) {
  Serial serial;
  std::vector<int> order;
  serial.Run([&] {
    serial.Run([&] { order.push_back(2); });
    order.push_back(1);
  });
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

TEST(SerialTest, WorkOfManyThreadsNeverOverlaps) {
  Serial serial;
  int count = 0;  // without a lock
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

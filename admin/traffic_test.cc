#include "admin/traffic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using testing::Pair;

Traffic TwoHours() {
  return {.sent_bytes = 3'000'000'000,
          .received_bytes = 5'000'000'000,
          .time = absl::Hours(2),
          .price_per_gb = 0.09};
}

TEST(Traffic, AProcessPaysForTheBytesThatItSends) {
  EXPECT_DOUBLE_EQ(TwoHours().bill().value(), 0.27);
  EXPECT_THAT(TrafficFacts(TwoHours()),
              ElementsAre(Pair("traffic per hour", "1.5 GB up, 2.5 GB down"),
                          Pair("bill", "0.27 at 0.09 per GB, 0.14 per hour")));
}

TEST(Traffic, ARunPaysForTheBytesInBothDirections) {
  Traffic traffic = TwoHours();
  traffic.whole_run = true;
  EXPECT_DOUBLE_EQ(traffic.bill().value(), 0.72);
}

TEST(Traffic, WithoutAPriceThereIsNoBill) {
  Traffic traffic = TwoHours();
  traffic.price_per_gb = 0;
  EXPECT_THAT(TrafficFacts(traffic), ElementsAre(Pair("traffic per hour", testing::_)));
  const nlohmann::ordered_json json = TrafficJson(traffic);
  EXPECT_TRUE(json["bill"].is_null());
  EXPECT_EQ(json["sent_bytes_per_hour"], 1.5e9);
  MetricList metrics;
  AddTrafficMetrics(traffic, metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_received_bytes_per_hour 2500000000\n"));
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("thinwire_bill")));
}

TEST(Traffic, JsonAndMetricsHaveTheBill) {
  const nlohmann::ordered_json json = TrafficJson(TwoHours());
  EXPECT_EQ(json["sent_bytes"], 3'000'000'000);
  EXPECT_EQ(json["received_bytes"], 5'000'000'000);
  EXPECT_EQ(json["price_per_gb"], 0.09);
  EXPECT_DOUBLE_EQ(json["bill"], 0.27);
  EXPECT_DOUBLE_EQ(json["bill_per_hour"], 0.135);
  MetricList metrics;
  AddTrafficMetrics(TwoHours(), metrics);
  EXPECT_THAT(metrics.Text(), HasSubstr("thinwire_bill 0.27"));
}

TEST(Traffic, BeforeAnyTimeTheRatesAreZero) {
  Traffic traffic = TwoHours();
  traffic.time = absl::ZeroDuration();
  EXPECT_EQ(traffic.sent_per_hour(), 0);
}

TEST(TrafficOf, ReadsTheCountersOfMessages) {
  WorkerCounters counters;
  counters.set_sent_bytes(1);
  counters.set_received_bytes(2);
  counters.set_push_bytes_encoded(100);
  const Traffic workers = TrafficOf(counters, absl::Seconds(1), 3, /*whole_run=*/true);
  EXPECT_EQ(workers.sent_bytes, 1u);
  EXPECT_EQ(workers.received_bytes, 2u);
  EXPECT_TRUE(workers.whole_run);
  StatusReply reply;
  reply.set_stream_sent_bytes(4);
  reply.set_stream_received_bytes(5);
  const Traffic server = TrafficOf(reply, absl::Seconds(1), 3);
  EXPECT_EQ(server.sent_bytes, 4u);
  EXPECT_EQ(server.received_bytes, 5u);
  EXPECT_FALSE(server.whole_run);
}

}  // namespace
}  // namespace thinwire

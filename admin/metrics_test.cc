#include "admin/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "common/time/clock.h"
#include "common/time/virtual_time.h"
#include "common/tls/authority.h"
#include "common/tls/certificate.h"
#include "common/version/version.h"
#include "proto/counters.h"

namespace thinwire {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST(MetricListTest, ValuesOfOneMetricFollowItsHelp) {
  MetricList metrics;
  metrics.Counter("pushes_total", "Pushes.", 12, {{"verdict", "late"}});
  metrics.Gauge("step", "The step.", 41);
  metrics.Counter("pushes_total", "Pushes.", 3, {{"verdict", "a\"b"}});
  EXPECT_EQ(metrics.Text(),
            "# HELP thinwire_pushes_total Pushes.\n"
            "# TYPE thinwire_pushes_total counter\n"
            "thinwire_pushes_total{verdict=\"late\"} 12\n"
            "thinwire_pushes_total{verdict=\"a\\\"b\"} 3\n"
            "# HELP thinwire_step The step.\n"
            "# TYPE thinwire_step gauge\n"
            "thinwire_step 41\n");
}

TEST(MetricListTest, EveryValueOfAProcessHasTheLabelsOfTheProcess) {
  MetricList metrics = MetricList::OfProcess("mnist", "worker", /*credentials=*/nullptr);
  metrics.Counter("pushes_total", "Pushes.", 12, {{"verdict", "late"}});
  int count = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(metrics.Text(), '\n'))) {
    if (line.empty() || line[0] == '#') continue;
    EXPECT_THAT(line, HasSubstr("job_name=\"mnist\",role=\"worker\"}"));
    ++count;
  }
  EXPECT_EQ(count, 3);
  EXPECT_THAT(metrics.Text(), Not(HasSubstr("certificate")));
}

TEST(MetricListTest, TheTimesOfTheCertificateAreThoseOfItsFileAndOfItsReading) {
  const absl::Time end = absl::FromUnixSeconds(4'000'000'000);
  const auto pair = MakeAuthority({.begin = absl::UnixEpoch(), .end = end});
  ASSERT_TRUE(pair.ok()) << pair.status();
  const std::string folder = absl::StrCat(testing::TempDir(), "/metrics_test_certificate");
  const auto write = [&](const std::string& text) {
    ASSERT_TRUE(WritePemFiles(folder, {{.name = kCertificateFile, .text = text}}, true).ok());
  };
  ManualClock unix_clock;
  unix_clock.Advance(absl::Seconds(3'000'000'000));
  VirtualTime time;
  write(pair->certificate);
  const CredentialsLog credentials(folder, time, unix_clock);
  const auto text = [](const CredentialsLog& credentials) {
    MetricList metrics;
    metrics.Certificate(credentials);
    return metrics.Text();
  };
  const char kReadTime[] = "\nthinwire_certificate_read_timestamp_seconds 3000000000\n";
  EXPECT_THAT(text(credentials), HasSubstr(kReadTime));
  EXPECT_THAT(text(credentials),
              HasSubstr("\nthinwire_certificate_expiry_timestamp_seconds 4000000000\n"));
  write("half a file");
  EXPECT_THAT(text(credentials), HasSubstr(kReadTime));
  EXPECT_THAT(text(credentials), Not(HasSubstr("expiry")));
  EXPECT_EQ(text(CredentialsLog("", time, unix_clock)), "");
}

TEST(MetricListTest, AHistogramCountsEveryValueInItsBucket) {
  MetricList metrics;
  const std::array<double, 3> bounds = {0, 2, 8};
  metrics.Histogram("staleness", "Staleness.", {{0, 5}, {1, 2}, {2, 1}, {3, 4}, {100, 7}}, bounds);
  EXPECT_EQ(metrics.Text(),
            "# HELP thinwire_staleness Staleness.\n"
            "# TYPE thinwire_staleness histogram\n"
            "thinwire_staleness_count 19\n"
            "thinwire_staleness_sum 716\n"
            "thinwire_staleness_bucket{le=\"0\"} 5\n"
            "thinwire_staleness_bucket{le=\"2\"} 8\n"
            "thinwire_staleness_bucket{le=\"8\"} 12\n"
            "thinwire_staleness_bucket{le=\"+Inf\"} 19\n");
}

TEST(MetricListTest, EveryCounterOfAWorkerHasAMetric) {
  WorkerCounters counters;
  counters.set_push_bytes_raw(400);
  counters.set_late_pushes(7);
  counters.set_encode_micros(1'500'000);
  MetricList metrics;
  metrics.AddWorkerCounters(counters);
  const std::string text = metrics.Text();
  EXPECT_THAT(text, HasSubstr("\nthinwire_worker_push_raw_bytes_total 400\n"));
  EXPECT_THAT(text, HasSubstr("\nthinwire_worker_late_pushes_total 7\n"));
  EXPECT_THAT(text, HasSubstr("\nthinwire_worker_sent_bytes_total 0\n"));
  EXPECT_THAT(text, HasSubstr("\nthinwire_worker_encode_seconds_total 1.5\n"));
  EXPECT_THAT(text, Not(HasSubstr("thinwire_worker_encode_micros")));
  int count = 0;
  ForEachCounter(counters, [&](const std::string& name, uint64_t) {
    EXPECT_THAT(text, HasSubstr(absl::StrCat("WorkerCounters.", name, " ")));
    ++count;
  });
  EXPECT_GE(count, 20);
}

TEST(MetricListTest, TheResidentMemoryIsThatOfThisProcess) {
  MetricList metrics;
  metrics.ResidentMemory();
  double bytes = 0;
  const std::string text = metrics.Text();
  ASSERT_TRUE(absl::SimpleAtod(text.substr(text.rfind(' ')), &bytes)) << text;
  EXPECT_GT(bytes, 100'000);
  EXPECT_LT(bytes, 1e12);
}

TEST(MetricListTest, TheBuildNamesItsProgram) {
  MetricList metrics;
  metrics.BuildInfo("server");
  EXPECT_THAT(metrics.Text(),
              HasSubstr(absl::StrCat("thinwire_build_info{program=\"server\",version=\"",
                                     std::string(BuildVersion()), "\",revision=\"",
                                     std::string(BuildRevision()), "\",compiler=\"")));
}

}  // namespace
}  // namespace thinwire

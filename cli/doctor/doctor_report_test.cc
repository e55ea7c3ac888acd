#include "cli/doctor/doctor_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_split.h"

namespace thinwire {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

CodecCandidate CandidateOf(const std::string& push, const std::string& pull, double bytes,
                           double error) {
  return {.push = push,
          .pull = pull,
          .push_cost = {.bytes = bytes, .encode_seconds = 1e-9, .decode_seconds = 1e-9},
          .pull_cost = {.bytes = bytes, .encode_seconds = 1e-9, .decode_seconds = 1e-9},
          .error = error};
}

DoctorReport Measured() {
  DoctorReport report;
  report.links = {
      {.address = "server-with-a-long-name.example:7000",
       .speed = {.round_trip = absl::Microseconds(250), .up = 1e8, .down = std::nullopt}}};
  report.disk = DiskSpeed{.bytes_per_second = 3e8, .flush = absl::Milliseconds(2)};
  report.candidates = {CandidateOf("fp32", "fp32", 4, 0),
                       CandidateOf("onebit_sign", "delta_onebit_sign", 0.125, 0.6),
                       CandidateOf("fp8_e4m3", "fp8_e4m3", 1, 0.03)};
  return report;
}

DoctorReport Predicted() {
  DoctorReport report = Measured();
  report.conditions = {.value_count = 123'456'789,
                       .worker_count = 64,
                       .server_count = 8,
                       .compute = absl::Seconds(100),
                       .up = 1e8,
                       .down = 1e8};
  for (const CodecCandidate& candidate : report.candidates) {
    report.predictions.push_back(Predict(candidate, *report.conditions));
  }
  return report;
}

TEST(DoctorReportTest, WithoutAModelOnlyMeasurementsAreShown) {
  DoctorReport report = Measured();
  report.notes = {"no prediction: unknown model"};
  const std::string text = DoctorText(report);
  EXPECT_THAT(text, HasSubstr("example:7000           0.25    100.0          -\n"));
  EXPECT_THAT(text, HasSubstr("disk: 2.00 ms per flush, 300 MB/s\n"));
  EXPECT_THAT(text, HasSubstr("\nno prediction: unknown model\n"));
  EXPECT_THAT(text, Not(HasSubstr("Predicted")));
  EXPECT_FALSE(DoctorJson(report).contains("predictions"));
}

TEST(DoctorReportTest, PredictionsAreSortedAndOneCodecIsRecommended) {
  const DoctorReport report = Predicted();
  const std::string text = DoctorText(report);
  EXPECT_LT(text.find("\nonebit_sign, delta "), text.rfind("\nfp8_e4m3 "));
  EXPECT_LT(text.rfind("\nfp8_e4m3 "), text.rfind("\nfp32 "));
  EXPECT_THAT(text, HasSubstr("  compression { push: onebit_sign pull: delta_onebit_sign }\n"));
  EXPECT_THAT(text, HasSubstr(" times faster than fp32.\n"));
  size_t longest = 0;
  for (const std::string& line : std::vector<std::string>(absl::StrSplit(text, '\n'))) {
    longest = std::max(longest, line.size());
  }
  EXPECT_LE(longest, 80u) << text;
  const auto json = DoctorJson(report);
  EXPECT_EQ(json["predictions"].size(), 3u);
  EXPECT_EQ(json["predictions"][0]["push"], "onebit_sign");
  EXPECT_EQ(json["recommended"]["pull"], "delta_onebit_sign");
}

}  // namespace
}  // namespace thinwire

#include "admin/summary_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

#include "common/files/crc32c.h"
#include "common/time/clock.h"

namespace thinwire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class SummaryWriterTest : public testing::Test {
 protected:
  SummaryWriterTest() { clock_.Advance(absl::Seconds(1'700'000'000)); }

  // Returns the bytes of the only file in the folder.
  std::string ReadFile() const {
    std::vector<std::string> paths;
    for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
      paths.push_back(entry.path().string());
    }
    EXPECT_EQ(paths.size(), 1u);
    EXPECT_THAT(paths.at(0), HasSubstr("/events.out.tfevents.1700000000."));
    std::ifstream in(paths.at(0), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(in), {});
  }

  // Returns the events of the file, whose framing and checksums it checks.
  std::vector<TensorBoardEvent> ReadEvents() const {
    const auto masked = [](std::string_view bytes) {
      const uint32_t crc = Crc32c(std::as_bytes(std::span(bytes)));
      return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
    };
    const std::string bytes = ReadFile();
    std::string_view rest = bytes;
    std::vector<TensorBoardEvent> events;
    while (!rest.empty()) {
      uint64_t length = 0;
      uint32_t checksum = 0;
      std::memcpy(&length, rest.data(), 8);
      std::memcpy(&checksum, rest.data() + 8, 4);
      EXPECT_EQ(checksum, masked(rest.substr(0, 8)));
      if (rest.size() < length + 16) {
        ADD_FAILURE() << "a record of " << length << " bytes, of which " << rest.size() - 16
                      << " are left";
        break;
      }
      const std::string_view event = rest.substr(12, length);
      std::memcpy(&checksum, rest.data() + 12 + length, 4);
      EXPECT_EQ(checksum, masked(event));
      EXPECT_TRUE(events.emplace_back().ParseFromArray(event.data(), static_cast<int>(length)));
      rest.remove_prefix(length + 16);
    }
    return events;
  }

  const std::string folder_ = [] {
    const std::string name =
        testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(name);
    return name + "/run";
  }();
  ManualClock clock_;
};

TEST(EventRecordTest, ARecordHasTheBytesThatTensorBoardWrites) {
  // The record writer of TensorBoard 2.18 writes these bytes for "abc".
  const unsigned char expected[] = {0x03, 0,    0,    0,    0,    0,    0,    0,    0xb0, 0x99,
                                    0x49, 0x0e, 0x61, 0x62, 0x63, 0x6e, 0x57, 0xf1, 0x21};
  const std::string record = EventRecord("abc");
  ASSERT_EQ(record.size(), sizeof(expected));
  EXPECT_EQ(std::memcmp(record.data(), expected, sizeof(expected)), 0)
      << testing::PrintToString(record);
}

TEST_F(SummaryWriterTest, AFileBeginsWithItsVersion) {
  const auto writer = SummaryWriter::Create(folder_, clock_);
  ASSERT_TRUE(writer.ok()) << writer.status();
  const std::vector<TensorBoardEvent> events = ReadEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].file_version(), "brain.Event:2");
  EXPECT_EQ(events[0].wall_time(), 1'700'000'000);
}

TEST_F(SummaryWriterTest, ScalarsHaveTheirStepAndTime) {
  const auto writer = SummaryWriter::Create(folder_, clock_).value();
  clock_.Advance(absl::Milliseconds(1500));
  writer->AddScalars(7, std::vector<Scalar>{{"train/loss", 0.5}, {"train/step_seconds", 0.25}});
  ASSERT_TRUE(writer->Flush().ok());
  const std::vector<TensorBoardEvent> events = ReadEvents();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].step(), 7);
  EXPECT_EQ(events[1].wall_time(), 1'700'000'001.5);
  ASSERT_EQ(events[1].summary().value_size(), 2);
  EXPECT_EQ(events[1].summary().value(0).tag(), "train/loss");
  EXPECT_EQ(events[1].summary().value(0).simple_value(), 0.5f);
  EXPECT_EQ(events[1].summary().value(1).tag(), "train/step_seconds");
}

TEST_F(SummaryWriterTest, AHistogramHasABucketForEachValue) {
  const auto writer = SummaryWriter::Create(folder_, clock_).value();
  writer->AddHistogram(9, "servers/staleness", {{0, 4}, {1, 2}, {5, 1}});
  ASSERT_TRUE(writer->Flush().ok());
  const std::vector<TensorBoardEvent> events = ReadEvents();
  ASSERT_EQ(events.size(), 2u);
  const TensorBoardHistogram& histogram = events[1].summary().value(0).histo();
  EXPECT_EQ(histogram.num(), 7);
  EXPECT_EQ(histogram.sum(), 7);
  EXPECT_EQ(histogram.sum_squares(), 27);
  EXPECT_EQ(histogram.min(), 0);
  EXPECT_EQ(histogram.max(), 5);
  EXPECT_THAT(histogram.bucket_limit(), ElementsAre(0.5, 1.5, 4.5, 5.5));
  EXPECT_THAT(histogram.bucket(), ElementsAre(4, 2, 0, 1));
}

TEST_F(SummaryWriterTest, AFolderThatCannotBeMadeIsNamed) {
  std::filesystem::create_directories(std::filesystem::path(folder_).parent_path());
  std::ofstream(folder_) << "a file";
  const auto writer = SummaryWriter::Create(folder_, clock_);
  EXPECT_FALSE(writer.ok());
  EXPECT_THAT(std::string(writer.status().message()), HasSubstr(folder_));
}

}  // namespace
}  // namespace thinwire

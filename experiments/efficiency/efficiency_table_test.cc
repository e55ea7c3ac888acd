#include "experiments/efficiency/efficiency_table.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "experiments/efficiency/payload_bytes.h"

namespace thinwire::lab {
namespace {

using ::testing::HasSubstr;

// A small network with the published figures of ResNet-20.
EfficiencyTable Table() {
  EfficiencyTable table;
  EfficiencyTable::Network& network = *table.add_network();
  network.set_name("ResNet-20");
  network.set_values(270'000);
  network.set_compute_seconds(0.146);
  network.set_select_seconds(0.0016);
  network.set_communicate_seconds(0.0247);
  for (const double percent : {31, 76, 86}) network.add_published(percent);
  table.add_workers(4);
  table.add_workers(32);
  return table;
}

// Returns the row of METHOD and SOURCE with WORKERS workers.
EfficiencyRow Find(const std::vector<EfficiencyRow>& rows, uint32_t workers,
                   const std::string& method, const std::string& source) {
  EfficiencyRow found;
  int count = 0;
  for (const EfficiencyRow& row : rows) {
    if (row.workers != workers || row.method != method || row.source != source) continue;
    found = row;
    ++count;
  }
  EXPECT_EQ(count, 1) << method << ", " << source;
  return found;
}

class EfficiencyTableTest : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { rows_ = new std::vector(EfficiencyRows(Table()).value()); }
  static void TearDownTestSuite() { delete rows_; }
  static EfficiencyRow Row(uint32_t workers, const std::string& method, const std::string& source) {
    return Find(*rows_, workers, method, source);
  }

  static std::vector<EfficiencyRow>* rows_;
};

std::vector<EfficiencyRow>* EfficiencyTableTest::rows_ = nullptr;

TEST_F(EfficiencyTableTest, EveryMethodHasItsRows) {
  // Three by formulas; four at 32 workers from the paper; two for each dense method and four for
  // each sparse one in virtual time.
  EXPECT_EQ(rows_->size(), 2 * (3 + 2 * 2 + 2 * 4) + 4);
  for (const EfficiencyRow& row : *rows_) {
    EXPECT_EQ(row.network, "ResNet-20");
    EXPECT_GT(row.efficiency, 0);
    EXPECT_LE(row.efficiency, 1);
    EXPECT_NEAR(row.efficiency * row.step_seconds, 0.146, 1e-12);
  }
}

TEST_F(EfficiencyTableTest, FormulasAddComputingSelectingAndCommunicating) {
  // 62 * 0.436 ms + 62 / 32 * 270,000 * 36 ns
  EXPECT_NEAR(Row(32, "dense", "formulas").step_seconds, 0.146 + 0.027032 + 0.0188325, 1e-9);
  EXPECT_NEAR(Row(32, "Top-k", "formulas").step_seconds, 0.146 + 0.0016 + 0.00278264, 1e-9);
  EXPECT_NEAR(Row(32, "gTop-k", "formulas").step_seconds, 0.146 + 0.0016 + 0.0045544, 1e-9);
}

TEST_F(EfficiencyTableTest, PublishedFiguresStandBesideEachOther) {
  EXPECT_NEAR(Row(32, "gTop-k", "published seconds").efficiency, 0.146 / 0.1723, 1e-9);
  EXPECT_NEAR(Row(32, "gTop-k", "published throughput").efficiency, 0.86, 1e-9);
  EXPECT_NEAR(Row(32, "dense", "published throughput").efficiency, 0.31, 1e-9);
}

TEST_F(EfficiencyTableTest, OverlapAndFastSelectionRaiseTheEfficiency) {
  for (const uint32_t workers : {4, 32}) {
    for (const std::string method : {"thinwire top-k", "thinwire gTop-k"}) {
      const double plain = Row(workers, method, "virtual time").efficiency;
      EXPECT_GT(Row(workers, method, "virtual time + overlap").efficiency, plain);
      EXPECT_LT(Row(workers, method, "virtual time + slow selection").efficiency, plain);
    }
    EXPECT_GT(Row(workers, "thinwire fp8", "virtual time + overlap").efficiency,
              Row(workers, "thinwire fp8", "virtual time").efficiency);
  }
}

TEST_F(EfficiencyTableTest, ThinwireReaches97PercentForResNet20) {
  EXPECT_GT(Row(32, "thinwire top-k", "virtual time").efficiency, 0.97);
  EXPECT_GT(Row(32, "thinwire gTop-k", "virtual time").efficiency, 0.97);
}

TEST_F(EfficiencyTableTest, TwoTablesAreEqual) {
  const auto again = EfficiencyRows(Table()).value();
  ASSERT_EQ(again.size(), rows_->size());
  for (size_t i = 0; i < again.size(); ++i) {
    EXPECT_EQ(again[i].step_seconds, (*rows_)[i].step_seconds) << i;
  }
}

TEST(EfficiencyTableErrorTest, ValuesOutOfRangeAreRefusedByName) {
  const auto error = [](auto set) {
    EfficiencyTable table = Table();
    set(table);
    return std::string(EfficiencyRows(table).status().message());
  };
  EXPECT_THAT(error([](EfficiencyTable& t) { t.add_workers(6); }),
              HasSubstr("efficiency.workers[2]: out of range (expected a power of two"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.set_density(0); }), HasSubstr("efficiency.density"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.set_beta_ms(0); }), HasSubstr("efficiency.beta_ms"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.mutable_network(0)->clear_values(); }),
              HasSubstr("efficiency.network[0].values"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.mutable_network(0)->clear_compute_seconds(); }),
              HasSubstr("efficiency.network[0].compute_seconds"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.mutable_network(0)->clear_name(); }),
              HasSubstr("efficiency.network[0].name"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.mutable_network(0)->set_name("a,b"); }),
              HasSubstr("no comma"));
  EXPECT_THAT(error([](EfficiencyTable& t) { t.mutable_network(0)->add_published(5); }),
              HasSubstr("got 4 values"));
}

// The efficiencies of the published networks at 32 workers. They rest on overlap and on the
// one-pass selection: the table also has the efficiencies without them.
TEST(EfficiencyFileTest, ThinwireReachesItsEfficienciesForThePublishedNetworks) {
  std::ifstream file("experiments/gtopk.textproto");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  Experiment experiment;
  ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &experiment));
  EfficiencyTable table = experiment.efficiency();
  table.clear_workers();
  table.add_workers(32);
  const auto rows = EfficiencyRows(table);
  ASSERT_TRUE(rows.ok()) << rows.status();
  const std::pair<const char*, double> kLeast[] = {
      {"VGG-16", 0.95}, {"ResNet-20", 0.97}, {"AlexNet", 0.95}, {"ResNet-50", 0.99}};
  for (const auto& [network, least] : kLeast) {
    double efficiency = 0;
    for (const EfficiencyRow& row : *rows) {
      if (row.network != network || row.method != "thinwire gTop-k") continue;
      if (row.source == "virtual time + overlap") efficiency = row.efficiency;
    }
    EXPECT_GE(efficiency, least) << network;
  }
}

TEST(PayloadBytesTest, PayloadsHaveTheSizesOfTheirCodecs) {
  constexpr uint64_t kValues = 100'000;
  const PayloadBytes fp8 = MeasurePayloadBytes(Compressor::kFp8, kValues, 4, 0.001);
  EXPECT_EQ(fp8.push, kValues + 1);
  EXPECT_EQ(fp8.pull, kValues + 1);
  const PayloadBytes onebit = MeasurePayloadBytes(Compressor::kOneBit, kValues, 4, 0.001);
  EXPECT_EQ(onebit.push, kValues / 8 + 13);
  EXPECT_EQ(onebit.pull, kValues / 8 + 13);
  // 2.46 bytes for each of 100 values (docs/codecs.md).
  const PayloadBytes top_k = MeasurePayloadBytes(Compressor::kTopK, kValues, 4, 0.001);
  EXPECT_NEAR(top_k.push, 246, 12);
  // An entry of an exact delta takes 23 to 28 bits and its index 6 to 12 (docs/deltas.md).
  EXPECT_GT(top_k.pull, 400 * (23 + 6) / 8);
  EXPECT_LT(top_k.pull, 400 * (28 + 12) / 8);
  const PayloadBytes gtopk = MeasurePayloadBytes(Compressor::kGtopk, kValues, 4, 0.001);
  EXPECT_EQ(gtopk.push, top_k.push);
  EXPECT_GT(gtopk.pull, 100 * (23 + 6) / 8);
  EXPECT_LT(gtopk.pull, 100 * (28 + 12) / 8);
}

}  // namespace
}  // namespace thinwire::lab

#include "server/durable/lead_file.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "server/durable/testing/faulty_files.h"

namespace thinwire {
namespace {

constexpr char kFolder[] = "state";

// Returns a state with one deal per step of STEPS.
LeadState StateOf(const std::vector<uint64_t>& steps) {
  LeadState state;
  state.set_run(9);
  for (const uint64_t step : steps) {
    Deal& deal = *state.add_deals();
    deal.set_step(step);
    deal.set_number(static_cast<uint32_t>(state.deals_size()));
    deal.add_members(0);
  }
  return state;
}

class LeadFileTest : public testing::Test {
 protected:
  LeadFileTest() {
    EXPECT_TRUE(files_.MakeFolder(kFolder).ok());
    EXPECT_TRUE(files_.SyncFolder("/").ok());
  }

  FaultyFiles files_;
};

TEST_F(LeadFileTest, TheNewestStateSurvivesALossOfPower) {
  EXPECT_FALSE(ReadLeadState(files_, kFolder, RunId{9}).value().has_value());
  for (const std::vector<uint64_t>& steps : {std::vector<uint64_t>{3}, {3, 8}}) {
    ASSERT_TRUE(WriteLeadState(files_, kFolder, StateOf(steps)).ok());
    files_.Crash();
    files_.Restart();
    const auto state = ReadLeadState(files_, kFolder, RunId{9});
    ASSERT_TRUE(state.ok() && state->has_value()) << state.status();
    EXPECT_EQ((*state)->SerializeAsString(), StateOf(steps).SerializeAsString());
  }
}

TEST_F(LeadFileTest, TheStateOfAnotherRunIsIgnored) {
  ASSERT_TRUE(WriteLeadState(files_, kFolder, StateOf({3})).ok());
  EXPECT_FALSE(ReadLeadState(files_, kFolder, RunId{8}).value().has_value());
}

TEST_F(LeadFileTest, ADamagedFileIsNamed) {
  ASSERT_TRUE(WriteLeadState(files_, kFolder, StateOf({3})).ok());
  files_.SetBytes("state/lead", std::vector<std::byte>(5, std::byte{0xff}));
  EXPECT_EQ(ReadLeadState(files_, kFolder, RunId{9}).status(),
            absl::DataLossError("state/lead: not the decisions of a lead"));
}

TEST_F(LeadFileTest, AnInvalidDealIsNamed) {
  ASSERT_TRUE(WriteLeadState(files_, kFolder, StateOf({8, 3})).ok());
  EXPECT_EQ(ReadLeadState(files_, kFolder, RunId{9}).status(),
            absl::DataLossError("state/lead: deal: step: out of range (expected 8 to "
                                "4611686018427387904, got 3)"));
}

}  // namespace
}  // namespace thinwire

#include "common/spec/shared_tensors.h"

#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

Partition Model(int64_t rows) {
  return Partition::Make({{.name = "b", .shape = {3}, .whole = true},
                          {.name = "w", .shape = {rows, 512}, .whole = true}},
                         0, 2)
      .value();
}

std::string Problem(const SharedTensorSettings& settings) {
  EXPECT_TRUE(CheckSharedTensors(Model(512), settings).ok());
  const absl::Status status = CheckSharedTensors(Model(513), settings);
  EXPECT_TRUE(status.ok() || absl::IsInvalidArgument(status)) << status;
  return std::string(status.message());
}

TEST(SharedTensorsTest, RoundsAllowThem) {
  EXPECT_EQ(Problem({.rule = Rule::Sync(2)}), "");
  EXPECT_EQ(Problem({.rule = Rule::Backup(3, 1)}), "");
}

TEST(SharedTensorsTest, OtherSettingsRefuseThemByName) {
  const std::string text =
      "tensor \"w\": has 262656 values; with optimizer lars or lamb, more than 262144 are only "
      "valid "
      "with ";
  EXPECT_EQ(Problem({.rule = Rule::Async(2)}), text + "mode: sync or backup (got mode: async)");
  EXPECT_EQ(Problem({.rule = Rule::Ssp(2, 4)}), text + "mode: sync or backup (got mode: ssp)");
  EXPECT_EQ(Problem({.rule = Rule::Sync(2), .logs = true}),
            text + "durability: none or checkpoint (got durability: log)");
  EXPECT_EQ(Problem({.rule = Rule::Sync(2), .clip_norm = 2.5}),
            text + "clip_norm: 0 (got clip_norm: 2.5)");
  EXPECT_EQ(Problem({.rule = Rule::Sync(2), .adaptive = true}),
            text + "a push other than adaptive (got push: adaptive)");
}

}  // namespace
}  // namespace thinwire

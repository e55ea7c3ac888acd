#include "admin/status_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace thinwire {
namespace {

using testing::ElementsAre;

TEST(StatusTableTest, TheBytesOfWorkersAreExact) {
  WorkerCounters counters;
  counters.set_push_bytes_raw(4000);
  counters.set_push_bytes_encoded(1000);
  counters.set_pull_bytes_raw(6000);
  counters.set_pull_bytes_encoded(3000);
  const StatusTable table = BytesTable(counters);
  EXPECT_THAT(table.columns, ElementsAre("direction", "payloads", "in fp32", "ratio"));
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("gradients", "1.0 kB", "4.0 kB", "4.0x"),
                                      ElementsAre("parameters", "3.0 kB", "6.0 kB", "2.0x")));
}

TEST(StatusTableTest, AnEstimateIsMarked) {
  const StatusTable table = BytesTable({1000, 4000}, {3000, 6000}, /*estimated=*/true);
  EXPECT_THAT(table.rows, ElementsAre(ElementsAre("gradients", "1.0 kB", "about 4.0 kB", "4.0x"),
                                      ElementsAre("parameters", "3.0 kB", "about 6.0 kB", "2.0x")));
}

TEST(StatusTableTest, ASectionHasAHeadingAndEscapesItsCells) {
  EXPECT_THAT(SectionHtml("Bytes", {.columns = {"a"}, .rows = {{"<b>"}}}),
              testing::AllOf(testing::HasSubstr(">Bytes<"), testing::HasSubstr("&lt;b&gt;")));
}

}  // namespace
}  // namespace thinwire

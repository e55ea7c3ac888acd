#include "worker/events.h"

#include <gtest/gtest.h>

#include <sstream>

namespace thinwire {
namespace {

TEST(EventLogTest, EveryEventIsALineWithTheWorkersNumber) {
  std::ostringstream out;
  EventLog log(out, WorkerId{3});
  WorkerEvent joined;
  joined.mutable_joined()->set_step(17);
  log.Write(joined);
  WorkerEvent error;
  error.mutable_error()->set_message("server 1: gone");
  log.Write(error);
  EXPECT_EQ(out.str(),
            "{\"worker\":3,\"joined\":{\"step\":\"17\",\"device\":\"\"}}\n"
            "{\"worker\":3,\"error\":{\"message\":\"server 1: gone\"}}\n");
}

}  // namespace
}  // namespace thinwire

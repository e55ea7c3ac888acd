#include "worker/trainer/events.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "proto/worker_event_json.h"

namespace thinwire {
namespace {

TEST(EventLogTest, EveryEventIsALineWithTheWorkersNumber) {
  std::ostringstream out;
  EventPrinter log(out, WorkerId{3});
  WorkerEvent joined;
  joined.mutable_joined()->set_step(17);
  joined.mutable_joined()->set_planned_steps(938);
  log.Write(joined);
  WorkerEvent error;
  error.mutable_error()->set_message("server 1: gone");
  log.Write(error);
  EXPECT_EQ(
      out.str(),
      "{\"worker\":3,\"joined\":{\"step\":\"17\",\"device\":\"\",\"planned_steps\":\"938\"}}\n"
      "{\"worker\":3,\"error\":{\"message\":\"server 1: gone\"}}\n");
}

TEST(EventLogTest, FewerStepsAreWrittenAndAllAreObserved) {
  std::ostringstream out;
  int observed = 0;
  EventPrinter log(
      out, WorkerId{0}, [&observed](const WorkerEvent&) { ++observed; }, /*every=*/3);
  WorkerEvent joined;
  joined.mutable_joined();
  log.Write(joined);
  for (uint64_t step = 0; step < 5; ++step) {
    WorkerEvent event;
    event.mutable_step()->set_step(step);
    log.Write(event);
    event.mutable_waiting()->set_text("waits");
    log.Write(event);
  }
  WorkerEvent done;
  done.mutable_done();
  log.Write(done);
  EXPECT_EQ(observed, 12);
  std::vector<std::string> kinds;
  const std::vector<std::string> lines = absl::StrSplit(out.str(), '\n', absl::SkipEmpty());
  for (const std::string& line : lines) {
    const absl::StatusOr<WorkerEvent> event = ParseWorkerEvent(line);
    ASSERT_TRUE(event.ok());
    kinds.push_back(event->has_step()     ? absl::StrCat("step ", event->step().step())
                    : event->has_joined() ? "joined"
                                          : "done");
  }
  EXPECT_THAT(kinds, testing::ElementsAre("joined", "step 0", "step 3", "done"));
}

TEST(WaitReporterTest, EveryChangeIsReportedOnce) {
  // The texts that consecutive calls of the reporter's `waiting` function return.
  const std::vector<std::string> texts = {"", "", "a", "a", "b", "", "", "a", "end", "end"};
  size_t calls = 0;
  absl::Notification sampled_all;
  std::ostringstream out;
  EventPrinter log(out, WorkerId{0});
  {
    WaitReporter reporter(
        log,
        [&] {
          const std::string text = texts[std::min(calls, texts.size() - 1)];
          if (++calls == texts.size()) sampled_all.Notify();
          return text;
        },
        absl::Microseconds(10));
    sampled_all.WaitForNotification();
  }
  std::string expected;
  for (const char* text : {"a", "b", "", "a", "end"}) {
    expected += std::string("{\"worker\":0,\"waiting\":{\"text\":\"") + text + "\"}}\n";
  }
  EXPECT_EQ(out.str(), expected);
}

TEST(WaitReporterTest, ItStopsWithoutWaitingForTheInterval) {
  std::ostringstream out;
  EventPrinter log(out, WorkerId{0});
  {
    WaitReporter reporter(
        log, [] { return std::string("x"); }, absl::InfiniteDuration());
  }
  EXPECT_EQ(out.str(), "") << "the text is not sampled before the interval has passed";
}

}  // namespace
}  // namespace thinwire

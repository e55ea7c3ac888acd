#include "proto/grpc_message.h"

#include <gtest/gtest.h>

namespace thinwire {
namespace {

TEST(PlainMessageTest, TheCauseOfAFailedConnectionRemains) {
  EXPECT_EQ(PlainMessage("failed to connect to all addresses; last error: UNKNOWN: "
                         "ipv4:10.0.0.7:7000: Failed to connect to remote host: Connection "
                         "refused"),
            "connection refused");
  EXPECT_EQ(PlainMessage("DNS resolution failed for nowhere:7000: Domain name not found"),
            "domain name not found");
}

TEST(PlainMessageTest, AFailedCallIsSaidInPlainWords) {
  EXPECT_EQ(PlainMessage("Deadline Exceeded"), "no answer in time");
  EXPECT_EQ(PlainMessage("Socket closed"), "the server closed the connection");
}

TEST(PlainMessageTest, AServersMessageStaysUnchanged) {
  for (const char* message : {"", "failed to connect: ", "step 4: is shut (expected step 5)"}) {
    EXPECT_EQ(PlainMessage(message), message);
  }
}

}  // namespace
}  // namespace thinwire

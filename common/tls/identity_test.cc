#include "common/tls/identity.h"

#include <gtest/gtest.h>

#include <string>

namespace thinwire {
namespace {

TEST(IdentityTest, ADnsNameIsParsedBack) {
  for (const Identity& identity :
       {Identity{Role::kServer, "train", 0}, Identity{Role::kWorker, "a-1", 4294967295u},
        Identity{Role::kWorker, "train", {}}, Identity{Role::kOperator, "x", {}},
        Identity{Role::kViewer, std::string(63, 'z'), {}}}) {
    const auto parsed = ParseIdentity(identity.DnsName());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, identity);
  }
  EXPECT_EQ((Identity{Role::kWorker, "train", 3}).DnsName(), "worker-3.train.thinwire");
}

TEST(IdentityTest, OtherNamesAreNoIdentities) {
  for (const char* name : {"",
                           "thinwire",
                           "worker.thinwire",
                           "worker.train.thinwire.org",
                           "worker.train.example",
                           "worker-03.train.thinwire",
                           "worker-.train.thinwire",
                           "worker--1.train.thinwire",
                           "worker-4294967296.train.thinwire",
                           "worker-+1.train.thinwire",
                           "worker- 1.train.thinwire",
                           "server.train.thinwire",
                           "viewer-1.train.thinwire",
                           "operator-0.train.thinwire",
                           "root.train.thinwire",
                           "Worker.train.thinwire",
                           "worker.Train.thinwire",
                           "worker.-train.thinwire",
                           "worker..thinwire",
                           "*.train.thinwire",
                           "worker.*.thinwire"}) {
    EXPECT_FALSE(ParseIdentity(name).ok()) << name;
  }
}

TEST(IdentityTest, OnlyAWorkerMayLeaveItsNumberOpen) {
  const Identity worker3{Role::kWorker, "train", 3};
  EXPECT_TRUE((Identity{Role::kWorker, "train", 3}).Fits(worker3));
  EXPECT_TRUE((Identity{Role::kWorker, "train", {}}).Fits(worker3));
  EXPECT_FALSE((Identity{Role::kWorker, "train", 4}).Fits(worker3));
  EXPECT_FALSE((Identity{Role::kWorker, "other", 3}).Fits(worker3));
  EXPECT_FALSE((Identity{Role::kServer, "train", 3}).Fits(worker3));
  const Identity any_worker{Role::kWorker, "train", {}};
  EXPECT_TRUE(worker3.Fits(any_worker));
  EXPECT_FALSE((Identity{Role::kServer, "train", 3}).Fits(any_worker));
}

}  // namespace
}  // namespace thinwire

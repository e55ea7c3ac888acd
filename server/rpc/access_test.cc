#include "server/rpc/access.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "server/protocols/membership/worker_tokens.h"

namespace thinwire {
namespace {

const Identity kLeadPeer{Role::kServer, "train", 0};
const Identity kServerPeer{Role::kServer, "train", 1};
const Identity kWorkerPeer{Role::kWorker, "train", 3};
const Identity kOperatorPeer{Role::kOperator, "train", {}};
const Identity kViewerPeer{Role::kViewer, "train", {}};

bool MayCall(const Identity& peer, const std::string& method) {
  return CheckAccess(method, peer, "train").ok();
}

TEST(AccessTest, NoMethodHasTwoRows) {
  std::set<std::string> methods;
  for (const AccessRow& row : AccessTable()) {
    EXPECT_TRUE(methods.insert(std::string(row.method)).second) << row.method;
  }
  EXPECT_GT(methods.size(), 10u);
}

TEST(AccessTest, EachPeerMayCallItsMethodsOnly) {
  EXPECT_TRUE(MayCall(kLeadPeer, "/thinwire.Control/Admit"));
  EXPECT_FALSE(MayCall(kServerPeer, "/thinwire.Control/Admit"));
  EXPECT_FALSE(MayCall(kWorkerPeer, "/thinwire.Control/Admit"));
  EXPECT_FALSE(MayCall(kOperatorPeer, "/thinwire.Control/Admit"));
  EXPECT_TRUE(MayCall(kWorkerPeer, "/thinwire.ParameterService/Exchange"));
  EXPECT_FALSE(MayCall(kLeadPeer, "/thinwire.ParameterService/Exchange"));
  EXPECT_TRUE(MayCall(kOperatorPeer, "/thinwire.Control/Scale"));
  EXPECT_FALSE(MayCall(kViewerPeer, "/thinwire.Control/Scale"));
  EXPECT_TRUE(MayCall(kOperatorPeer, "/thinwire.Control/Drain"));
  EXPECT_FALSE(MayCall(kWorkerPeer, "/thinwire.Control/Drain"));
  EXPECT_TRUE(MayCall(kViewerPeer, "/thinwire.Control/Status"));
  EXPECT_TRUE(MayCall(kOperatorPeer, "/thinwire.Control/SaveCheckpoint"));
  EXPECT_TRUE(MayCall(kLeadPeer, "/thinwire.Control/SaveCheckpoint"));
  EXPECT_TRUE(MayCall(kOperatorPeer, "/thinwire.Control/RestoreCheckpoint"));
  for (const Identity& peer : {kViewerPeer, kWorkerPeer, kServerPeer}) {
    EXPECT_FALSE(MayCall(peer, "/thinwire.Control/SaveCheckpoint"));
    EXPECT_FALSE(MayCall(peer, "/thinwire.Control/RestoreCheckpoint"));
  }
  EXPECT_FALSE(MayCall(kLeadPeer, "/thinwire.Control/RestoreCheckpoint"));
}

TEST(AccessTest, MethodsOutsideTheTableAreRefused) {
  for (const char* method : {"", "/", "/thinwire.Control/", "/thinwire.Control/Join/",
                             "thinwire.Control/Join", "/thinwire.Control/join", "/x.Y/Z"}) {
    EXPECT_FALSE(MayCall(kLeadPeer, method)) << method;
    EXPECT_FALSE(MayCall(kWorkerPeer, method)) << method;
  }
}

TEST(AccessTest, ACertificateOfAnotherJobGivesNoAccess) {
  const absl::Status status =
      CheckAccess("/thinwire.Control/Status", {Role::kViewer, "other", {}}, "train");
  EXPECT_EQ(status.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(std::string(status.message()),
            "certificate: of another job (expected train, got viewer.other.thinwire)");
}

TEST(AccessTest, ARefusalNamesTheAllowedPeers) {
  EXPECT_EQ(std::string(CheckAccess("/thinwire.Control/Scale", kViewerPeer, "train").message()),
            "/thinwire.Control/Scale: not allowed (expected server 0 or an operator, got "
            "viewer.train.thinwire)");
}

TEST(AccessTest, ANumberedCertificateIsGoodForItsWorkerOnly) {
  const WorkerProof proof = {.certified = WorkerId{3}};
  EXPECT_TRUE(CheckWorker(proof, WorkerId{3}).ok());
  EXPECT_TRUE(CheckWorker(WorkerProof(), WorkerId{3}).ok());
  EXPECT_EQ(std::string(CheckWorker(proof, WorkerId{4}).message()),
            "worker: not the worker of the certificate (expected 3, got 4)");
}

TEST(AccessTest, ANumberedCertificateAndPlaintextNeedNoToken) {
  const WorkerTokens tokens("train", "key");
  const WorkerProof proof = {.certified = WorkerId{3}};
  EXPECT_TRUE(CheckProcess(proof, tokens, WorkerId{3}, Incarnation{7}).ok());
  EXPECT_FALSE(CheckProcess(proof, tokens, WorkerId{4}, Incarnation{7}).ok());
  EXPECT_TRUE(CheckProcess(WorkerProof(), tokens, WorkerId{3}, Incarnation{7}).ok());
}

TEST(AccessTest, ASharedCertificateNeedsTheTokenOfTheProcess) {
  const WorkerTokens tokens("train", "key");
  const auto check = [&](const std::string& token) {
    return CheckProcess({.needs_token = true, .token = token}, tokens, WorkerId{3}, Incarnation{7});
  };
  EXPECT_EQ(check(tokens.Of(WorkerId{3}, Incarnation{7})), absl::OkStatus());
  EXPECT_EQ(check(tokens.Of(WorkerId{2}, Incarnation{7})),
            absl::PermissionDeniedError(
                "token: required with a certificate without number (expected that of worker 3 "
                "incarnation 7 in this server's run, got another one)"));
  EXPECT_TRUE(absl::IsPermissionDenied(check(tokens.Of(WorkerId{3}, Incarnation{6}))));
  EXPECT_TRUE(
      absl::IsPermissionDenied(check(WorkerTokens("train", "k").Of(WorkerId{3}, Incarnation{7}))));
  EXPECT_EQ(check(""), absl::PermissionDeniedError(
                           "token: required with a certificate without number (expected that of "
                           "worker 3 incarnation 7 in this server's run, got none)"));
}

TEST(AccessTest, ATokenEndsAndIsRenewedBefore) {
  const WorkerTokens tokens("train", "key");
  const absl::Time made = absl::FromUnixSeconds(1800000000);
  const std::string token = tokens.Of(WorkerId{3}, Incarnation{7}, made);
  const auto check = [&](absl::Duration later) {
    return tokens.Check(WorkerId{3}, Incarnation{7}, token, made + later);
  };
  EXPECT_EQ(check(kTokenLife - absl::Seconds(1)), absl::OkStatus());
  EXPECT_EQ(check(kTokenLife),
            absl::PermissionDeniedError("token: expired (valid until 2027-01-16 08:00:00 UTC); a "
                                        "worker gets a new one with its heartbeats"));
  EXPECT_FALSE(WorkerTokens::EndsSoon(token, made));
  EXPECT_TRUE(WorkerTokens::EndsSoon(token, made + kTokenLife / 2 + absl::Seconds(1)));
  // The end is part of the signed message.
  std::string longer = token;
  ++longer[4];
  EXPECT_TRUE(absl::IsPermissionDenied(tokens.Check(WorkerId{3}, Incarnation{7}, longer, made)));
}

TEST(AccessTest, AServerWithoutAKeyAcceptsNoToken) {
  WorkerTokens tokens("train");
  EXPECT_EQ(tokens.Of(WorkerId{3}, Incarnation{7}), "");
  const WorkerProof empty = {.needs_token = true};
  EXPECT_FALSE(CheckProcess(empty, tokens, WorkerId{3}, Incarnation{7}).ok());
  tokens.set_key("key");
  const std::string token = tokens.Of(WorkerId{3}, Incarnation{7});
  const WorkerProof proof = {.needs_token = true, .token = token};
  EXPECT_TRUE(CheckProcess(proof, tokens, WorkerId{3}, Incarnation{7}).ok());
}

}  // namespace
}  // namespace thinwire

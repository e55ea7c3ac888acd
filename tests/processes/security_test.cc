// Tests promises 8 and 9 of docs/testing.md with real processes. access_test.cc tests the access
// table of promise 8.
#include <gmock/gmock.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/rpc/server_calls.h"
#include "common/base/ids.h"
#include "common/tls/authority.h"
#include "common/tls/certificate.h"
#include "common/tls/identity.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"
#include "proto/parameter_service.grpc.pb.h"
#include "proto/worker_event.pb.h"
#include "tests/processes/daemons.h"
#include "tests/fault_proxy/proxy_thread.h"
#include "tests/processes/test_authority.h"

namespace thinwire {
namespace {

using testing::HasSubstr;

constexpr uint32_t kServers = 2;
constexpr uint32_t kWorkers = 2;
const Identity kViewer{Role::kViewer, "secure", {}};
const Identity kAnyWorker{Role::kWorker, "secure", {}};  // shared by all workers

Identity ServerIdentity(uint32_t number) { return {Role::kServer, "secure", number}; }
Identity WorkerIdentity(uint32_t number) { return {Role::kWorker, "secure", number}; }
std::string WorkerName(uint32_t number) { return absl::StrCat("worker", number); }

class SecurityTest : public testing::Test {
 protected:
  static std::string JobFile(uint32_t epochs, int start_timeout_seconds = 60) {
    return absl::StrCat(
        "name: \"secure\" servers: ", kServers, " consistency { mode: sync workers: ", kWorkers,
        " start_timeout_seconds: ", start_timeout_seconds,
        " } optimization { learning_rate: 0.01 } compression { push: fp32 pull: fp32 "
        "} task { model: softmax train_examples: 3000 test_examples: 500 batch_size: "
        "50 epochs: ",
        epochs, " }");
  }

  // Starts server S as the process NAME, and returns its address.
  std::string StartServer(uint32_t s, const std::string& name, const std::string& job,
                          const std::string& listen) {
    std::vector<std::string> flags = {"--server",      absl::StrCat(s),
                                      "--listen",      listen,
                                      "--credentials", authority_.Write(ServerIdentity(s))};
    if (s == 0) flags.insert(flags.end(), {"--addresses", absl::StrJoin(addresses_, ",")});
    if (!state_dir_.empty()) flags.insert(flags.end(), {"--state_dir", state_dir_});
    return daemons_.StartServer(name, job, flags);
  }

  // Starts the servers and, if PROXIES is true, one proxy for each server. Sets addresses_ to the
  // addresses for workers.
  void StartServers(const std::string& job, bool proxies) {
    addresses_.assign(kServers, "127.0.0.1:1");
    for (uint32_t s = kServers; s-- > 0;) {
      addresses_[s] = StartServer(s, absl::StrCat("server", s), job, "127.0.0.1:0");
      ASSERT_NE(addresses_[s], "");
    }
    server_addresses_ = addresses_;
    for (uint32_t s = 0; s < kServers && proxies; ++s) {
      auto proxy = ProxyThread::Start({.target = addresses_[s]});
      ASSERT_TRUE(proxy.ok()) << proxy.status();
      addresses_[s] = (*proxy)->address();
      proxies_.push_back(*std::move(proxy));
    }
  }

  // SHARED is the credentials folder of all workers; "": each worker has its own.
  void StartWorkers(const std::string& job, const std::string& shared = "") {
    for (uint32_t w = 0; w < kWorkers; ++w) {
      daemons_.StartWorker(
          WorkerName(w), job,
          {"--worker", absl::StrCat(w), "--addresses", absl::StrJoin(addresses_, ","), "--delay",
           "20ms", "--credentials", shared.empty() ? authority_.Write(WorkerIdentity(w)) : shared});
    }
  }

  // Acts as worker 0 at server S with CREDENTIALS and TOKEN; "": no token. Expects that each call
  // is refused.
  void ExpectRefusedAsWorker0(uint32_t s, const StatusReply& server, const Credentials& credentials,
                              const std::string& token) {
    const uint64_t incarnation = server.workers(0).incarnation();
    const auto channel =
        credentials.Connect(server_addresses_[s], ServerId{s}, grpc::ChannelArguments());
    const auto stub = Control::NewStub(channel);
    const auto expect_refused = [&](const auto& call) {
      grpc::ClientContext context;
      context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
      if (!token.empty()) context.AddMetadata("thinwire-token-bin", token);
      const grpc::Status status = call(&context);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::PERMISSION_DENIED) << status.error_message();
      EXPECT_THAT(status.error_message(), HasSubstr("token: required "));
    };
    expect_refused([&](grpc::ClientContext* context) {
      JoinRequest request;
      request.set_job("secure");
      request.set_incarnation(incarnation);
      request.set_run(server.run());
      JoinReply reply;
      return stub->Join(context, request, &reply);
    });
    expect_refused([&](grpc::ClientContext* context) {
      HeartbeatRequest request;
      request.set_incarnation(incarnation);
      request.set_epoch(server.epoch());
      HeartbeatReply reply;
      return stub->Heartbeat(context, request, &reply);
    });
    expect_refused([&](grpc::ClientContext* context) {
      LeaveRequest request;
      request.set_incarnation(incarnation);
      request.set_run(server.run());
      LeaveReply reply;
      return stub->Leave(context, request, &reply);
    });
    expect_refused([&](grpc::ClientContext* context) {
      const auto stream = ParameterService::NewStub(channel)->Exchange(context);
      WorkerMessage message;
      message.set_incarnation(incarnation);
      message.set_generation(server.generation());
      message.set_epoch(server.epoch());
      stream->Write(message);
      ServerMessage answer;
      EXPECT_FALSE(stream->Read(&answer));
      return stream->Finish();
    });
  }

  // Waits for the next step of worker 0.
  void WaitForNextStep() {
    const auto event = daemons_.WaitForEvent(WorkerName(0), IsStep(step_ + 1));
    ASSERT_TRUE(event.has_value());
    step_ = event->step().step();
  }

  // Returns the certificate that a server shows to a new connection; "" if it cannot be reached.
  std::string ShownCertificate(uint32_t server, const Credentials& credentials) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const auto stub = Control::NewStub(
        credentials.Connect(server_addresses_[server], ServerId{server}, arguments));
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    StatusReply reply;
    if (!stub->Status(&context, StatusRequest(), &reply).ok()) return "";
    const auto values =
        context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    if (values.size() != 1) return "";
    const auto parsed = ParseCertificates(std::string(values[0].data(), values[0].size()), "peer");
    return parsed.ok() ? (*parsed)[0].fingerprint : "";
  }

  // Waits until all servers show the certificates in their folders to a new connection. The caller
  // shows a certificate of AUTHORITY and trusts AUTHORITIES.
  void WaitForNewCertificates(TestAuthority& authority, const std::string& authorities) {
    authority.Write(kViewer, authorities);
    const auto credentials = Credentials::Load(authority.DirOf(kViewer), kViewer);
    ASSERT_TRUE(credentials.ok()) << credentials.status();
    for (uint32_t s = 0; s < kServers; ++s) {
      const auto own = ReadCertificates(absl::StrCat(DirOfServer(s), "/", kCertificateFile));
      ASSERT_TRUE(own.ok()) << own.status();
      // The steps of the job pace the attempts.
      while (ShownCertificate(s, *credentials) != (*own)[0].fingerprint) {
        ASSERT_NO_FATAL_FAILURE(WaitForNextStep());
      }
    }
  }

  // Replaces the files in the folders of all processes by certificates of AUTHORITY. The processes
  // trust AUTHORITIES from then on.
  void ReplaceAll(TestAuthority& authority, const std::string& authorities) {
    const auto replace = [&](const Identity& identity) {
      ASSERT_EQ(WritePemFiles(authority_.DirOf(identity),
                              CredentialFiles(authorities, authority.Issue(identity)),
                              /*replace=*/true),
                absl::OkStatus());
    };
    for (uint32_t s = 0; s < kServers; ++s) replace(ServerIdentity(s));
    for (uint32_t w = 0; w < kWorkers; ++w) replace(WorkerIdentity(w));
  }

  std::string DirOfServer(uint32_t server) const {
    return authority_.DirOf(ServerIdentity(server));
  }

  // Expects that all workers finish, and returns the number of their reconnects.
  uint64_t ExpectDone() {
    uint64_t reconnect_count = 0;
    for (uint32_t w = 0; w < kWorkers; ++w) {
      const auto done = daemons_.WaitForEvent(WorkerName(w), IsEvent(WorkerEvent::kDone));
      const ProcessResult end = daemons_.WaitForEnd(WorkerName(w));
      EXPECT_EQ(end.exit, ExitStatus()) << end.log;
      if (done.has_value()) reconnect_count += done->done().counters().reconnects();
    }
    return reconnect_count;
  }

  // Runs PROGRAM with the job file of this test and expects that it ends with exit code 78 and a
  // message with TEXT.
  void ExpectConfigError(const std::string& program, std::vector<std::string> flags,
                         const std::string& text) {
    flags.insert(flags.begin(), {"--config", daemons_.Write("job.textproto", JobFile(1))});
    const ProcessResult run = daemons_.Run(program, flags);
    EXPECT_EQ(run.exit.code, 78) << run.log;
    EXPECT_THAT(run.log, HasSubstr(text));
  }

  Daemons daemons_;  // must be created before the threads of gRPC and the proxies start
  TestAuthority authority_{absl::StrCat(daemons_.folder(), "/authority")};
  std::string state_dir_;  // of the servers; "": none
  std::vector<std::string> addresses_;
  std::vector<std::string> server_addresses_;
  std::vector<std::unique_ptr<ProxyThread>> proxies_;
  uint64_t step_ = 0;
};

TEST_F(SecurityTest, Promise8WithoutCredentialsAServerListensOnLoopbackOnly) {
  ExpectConfigError(
      "server/server", {"--server", "1", "--listen", "0.0.0.0:0"},
      "(expected --credentials, an address of this machine such as 127.0.0.1:7000, or "
      "--insecure in a network that nobody else reaches, got 0.0.0.0:0)");
  EXPECT_NE(daemons_.StartServer("exposed", JobFile(1),
                                 {"--server", "1", "--listen", "0.0.0.0:0", "--credentials",
                                  authority_.Write(ServerIdentity(1))}),
            "");
}

TEST_F(SecurityTest, Promise8WithoutCredentialsAWorkerCallsServersOnLoopbackOnly) {
  ExpectConfigError(
      "worker/worker", {"--worker", "0", "--addresses", "127.0.0.1:1,0.0.0.0:1"},
      "--addresses: reachable from other machines without credentials (expected --credentials, an "
      "address of this machine such as 127.0.0.1:7000, or --insecure in a network that nobody else "
      "reaches, got 0.0.0.0:1)");
  ExpectConfigError(
      "server/server",
      {"--server", "0", "--listen", "127.0.0.1:0", "--addresses", "127.0.0.1:1,0.0.0.0:1"},
      "--addresses: reachable from other machines without credentials ");
}

TEST_F(SecurityTest, Promise8AProcessRefusesTheCertificateOfAnotherProcess) {
  const std::string worker0 = authority_.Write(WorkerIdentity(0));
  const std::string server1 = authority_.Write(ServerIdentity(1));
  const std::string other_job = authority_.Write({Role::kWorker, "other", 0});
  ExpectConfigError("server/server", {"--server", "1", "--credentials", worker0},
                    "--credentials: the certificate of another process (expected "
                    "server-1.secure.thinwire, got worker-0.secure.thinwire in ");
  ExpectConfigError("server/server",
                    {"--server", "0", "--addresses", "a:1,b:1", "--listen", "127.0.0.1:0",
                     "--credentials", server1},
                    "(expected server-0.secure.thinwire, got server-1.secure.thinwire in ");
  const std::vector<std::string> worker1 = {"--worker", "1", "--addresses",
                                            "127.0.0.1:1,127.0.0.1:2", "--credentials"};
  const auto expect_worker_error = [&](const std::string& dir, const std::string& text) {
    std::vector<std::string> flags = worker1;
    flags.push_back(dir);
    ExpectConfigError("worker/worker", flags, text);
  };
  expect_worker_error(worker0, "(expected worker-1.secure.thinwire, got worker-0.secure.thinwire ");
  expect_worker_error(other_job,
                      "(expected worker-1.secure.thinwire, got worker-0.other.thinwire ");
  expect_worker_error("/nonexistent", "/nonexistent/ca.pem: cannot be read");
}

TEST_F(SecurityTest, Promise8DamagedCredentialsAreRefusedInOneLine) {
  const std::string dir = authority_.Write(ServerIdentity(1));
  const auto expect_error = [&](const KeyPair& pair, const std::string& text) {
    ASSERT_EQ(WritePemFiles(dir, CredentialFiles(authority_.pair().certificate, pair), true),
              absl::OkStatus());
    ExpectConfigError("server/server", {"--server", "1", "--credentials", dir}, text);
  };
  const KeyPair pair = authority_.Issue(ServerIdentity(1));
  expect_error({pair.certificate, authority_.pair().key},
               "/key.pem: does not match the certificate in cert.pem");
  expect_error({"nothing", pair.key}, "/cert.pem: not a certificate (expected PEM, got 7 bytes)");
  expect_error(authority_.Issue(ServerIdentity(1), -absl::Hours(1)), "/cert.pem: expired (valid ");
  TestAuthority other(absl::StrCat(daemons_.folder(), "/other"));
  expect_error(other.Issue(ServerIdentity(1)), "/cert.pem: not valid with the authorities in ");
}

TEST_F(SecurityTest, Promise8AWorkerWithoutCredentialsCannotJoin) {
  const std::string job = JobFile(1, /*start_timeout_seconds=*/1);
  StartServers(job, /*proxies=*/false);
  daemons_.StartWorker("plain", job,
                       {"--worker", "0", "--addresses", absl::StrJoin(addresses_, ",")});
  EXPECT_EQ(daemons_.WaitForEnd("plain").exit.code, 69);
  const auto statuses =
      ServerCalls(server_addresses_, authority_.Load(kViewer)).Status(absl::Seconds(30));
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  for (const StatusReply& status : *statuses) EXPECT_FALSE(status.sealed());
}

TEST_F(SecurityTest, Promise8WorkersWithOneCertificateCannotActForEachOther) {
  const std::string job = JobFile(15) + " recovery { durability: log }";
  state_dir_ = daemons_.folder() + "/state";
  StartServers(job, /*proxies=*/false);
  const Credentials shared = authority_.Load(kAnyWorker);
  StartWorkers(job, authority_.DirOf(kAnyWorker));
  ASSERT_NO_FATAL_FAILURE(WaitForNextStep());
  const auto statuses =
      ServerCalls(server_addresses_, authority_.Load(kViewer)).Status(absl::Seconds(30));
  ASSERT_TRUE(statuses.ok()) << statuses.status();
  for (uint32_t s = 0; s < kServers; ++s) {
    ASSERT_EQ((*statuses)[s].workers_size(), int{kWorkers});
    ExpectRefusedAsWorker0(s, (*statuses)[s], shared, "");
    ExpectRefusedAsWorker0(s, (*statuses)[s], shared, std::string(24, 'x'));
  }
  // The workers join the servers again with their tokens.
  for (uint32_t s = 0; s < kServers; ++s) {
    const std::string name = absl::StrCat("server", s);
    daemons_.Signal(name, SIGKILL);
    daemons_.WaitForEnd(name);
    EXPECT_EQ(StartServer(s, name + "again", job, addresses_[s]), addresses_[s]);
    ASSERT_NO_FATAL_FAILURE(WaitForNextStep());
  }
  EXPECT_GE(ExpectDone(), kWorkers * kServers);
}

TEST_F(SecurityTest, Promise9RotationUnderLoadCostsNoStepAndNoConnection) {
  const std::string job = JobFile(30);
  const std::string& authorities = authority_.pair().certificate;
  StartServers(job, /*proxies=*/false);
  StartWorkers(job);
  WaitForNextStep();
  for (int rotation = 0; rotation < 2; ++rotation) {
    ReplaceAll(authority_, authorities);
    ASSERT_NO_FATAL_FAILURE(WaitForNewCertificates(authority_, authorities));
    for (const char* name : {"server0", "worker0"}) {
      EXPECT_TRUE(daemons_.WaitForLog(name, "/cert.pem: read again, valid until"));
    }
  }
  EXPECT_EQ(ExpectDone(), 0);
}

TEST_F(SecurityTest, Promise9ANewAuthorityReplacesTheOldOneUnderLoad) {
  const std::string job = JobFile(40);
  TestAuthority next(absl::StrCat(daemons_.folder(), "/next"));
  const std::string both = absl::StrCat(authority_.pair().certificate, next.pair().certificate);
  StartServers(job, /*proxies=*/true);
  StartWorkers(job);
  WaitForNextStep();
  ReplaceAll(authority_, both);
  ASSERT_NO_FATAL_FAILURE(WaitForNewCertificates(authority_, both));
  ReplaceAll(next, both);
  ASSERT_NO_FATAL_FAILURE(WaitForNewCertificates(next, both));
  // The workers connect again with their new certificates, as they do at the latest after the
  // greatest age of a connection.
  absl::SleepFor(2 * kCredentialsRefresh);
  for (const auto& proxy : proxies_) ASSERT_EQ(proxy->Command("reset"), absl::OkStatus());
  ASSERT_NO_FATAL_FAILURE(WaitForNextStep());
  ReplaceAll(next, next.pair().certificate);
  ASSERT_NO_FATAL_FAILURE(WaitForNewCertificates(next, next.pair().certificate));
  EXPECT_GE(ExpectDone(), kWorkers * kServers);
  const auto old_viewer = authority_.Load(kViewer);
  EXPECT_EQ(ShownCertificate(0, old_viewer), "");
}

}  // namespace
}  // namespace thinwire

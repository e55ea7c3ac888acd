// Calls every method of a server with mutual TLS as every kind of peer, and compares the result
// with the table in docs/security.md. The services of the server come from its reflection, so a new
// method without a row fails this test.
#include "server/rpc/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <grpc/grpc_security.h>
#include <grpc/grpc_security_constants.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/process/temp_dir.h"
#include "common/base/ids.h"
#include "common/model/partition.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/tls/authority.h"
#include "common/tls/identity.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/job/job.h"
#include "server/job/job_threads.h"
#include "server/job/make_job.h"
#include "server/rpc/listener.h"
#include "server/rpc/testing/call_method.h"
#include "tests/processes/test_authority.h"

namespace thinwire {
namespace {

using google::protobuf::DescriptorPool;
using google::protobuf::MessageFactory;

constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kPage[] = "docs/security.md";

const Identity kLeadPeer{Role::kServer, "train", 0};
const Identity kServerPeer{Role::kServer, "train", 1};
const Identity kWorkerPeer{Role::kWorker, "train", {}};
const Identity kWorker0Peer{Role::kWorker, "train", 0};
const Identity kOperatorPeer{Role::kOperator, "train", {}};
const Identity kViewerPeer{Role::kViewer, "train", {}};
// The peers in the order of the columns of the table.
const std::vector<Identity> kColumns = {kLeadPeer, kServerPeer, kWorker0Peer, kOperatorPeer,
                                        kViewerPeer};

// Returns the table in docs/security.md: for each method, whether the peers in the order of
// kColumns may call it.
std::map<std::string, std::vector<bool>> DocumentedTable() {
  std::map<std::string, std::vector<bool>> table;
  std::ifstream page(kPage);
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| `/", 0) != 0) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    const std::string method(absl::StripAsciiWhitespace(cells[1]));
    std::vector<bool>& row = table[method.substr(1, method.size() - 2)];
    for (size_t i = 2; i + 1 < cells.size(); ++i) {
      row.push_back(absl::StripAsciiWhitespace(cells[i]) == "yes");
    }
  }
  return table;
}

bool IsDenied(const MethodReply& answer) {
  return !answer.message.has_value() &&
         answer.status.error_code() == grpc::StatusCode::PERMISSION_DENIED;
}

// Returns the names of all services of the server behind CHANNEL.
std::vector<std::string> ServicesOf(const std::shared_ptr<grpc::Channel>& channel) {
  const auto make = [](const char* name) {
    const auto* type = DescriptorPool::generated_pool()->FindMessageTypeByName(
        absl::StrCat("grpc.reflection.v1alpha.", name));
    return std::unique_ptr<google::protobuf::Message>(
        MessageFactory::generated_factory()->GetPrototype(type)->New());
  };
  const auto request = make("ServerReflectionRequest");
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString("list_services: '*'", request.get()));
  const MethodReply answer = CallMethod(channel, kReflection, request->SerializeAsString());
  const auto reply = make("ServerReflectionResponse");
  EXPECT_TRUE(reply->ParseFromString(answer.message.value_or("")));
  std::vector<std::string> names;
  for (const auto& line : absl::StrSplit(reply->DebugString(), '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, '"');
    if (absl::StripAsciiWhitespace(words[0]) == "name:") names.push_back(words[1]);
  }
  return names;
}

// Returns all methods of the server behind CHANNEL, as in the access table.
std::set<std::string> MethodsOf(const std::shared_ptr<grpc::Channel>& channel) {
  std::set<std::string> methods;
  for (const std::string& service : ServicesOf(channel)) {
    if (service == "grpc.health.v1.Health") {  // gRPC implements it without a descriptor
      methods.insert({"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"});
      continue;
    }
    const auto* descriptor = DescriptorPool::generated_pool()->FindServiceByName(service);
    EXPECT_NE(descriptor, nullptr) << service;
    for (int i = 0; descriptor != nullptr && i < descriptor->method_count(); ++i) {
      methods.insert(absl::StrCat("/", service, "/", descriptor->method(i)->name()));
    }
  }
  return methods;
}

grpc::ChannelArguments OwnConnection() {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return arguments;
}

// A server of the job "train" with mutual TLS, in this process.
class AccessTest : public testing::Test {
 protected:
  static JobSpec TwoWorkers() {
    JobSpec spec;
    spec.rule = Rule::Sync(2);
    return spec;
  }

  static bool EnablePlugins() {
    grpc::EnableDefaultHealthCheckService(true);
    static const bool once = [] {
      grpc::reflection::InitProtoReflectionServerBuilderPlugin();
      return true;
    }();
    return once;
  }

  // Returns a channel with the credentials of PEER.
  std::shared_ptr<grpc::Channel> ChannelOf(const Identity& peer) {
    return authority_.Load(peer).Connect(listener_->address(), ServerId{0}, OwnConnection());
  }

  // Returns a channel of a client that trusts the server and shows the certificate of PAIR.
  // nullptr: no certificate.
  std::shared_ptr<grpc::Channel> ChannelWith(const KeyPair* pair,
                                             grpc::ChannelArguments arguments = OwnConnection()) {
    using grpc::experimental::StaticDataCertificateProvider;
    const std::string& roots = authority_.pair().certificate;
    grpc::experimental::TlsChannelCredentialsOptions options;
    options.set_certificate_provider(
        pair == nullptr ? std::make_shared<StaticDataCertificateProvider>(roots)
                        : std::make_shared<StaticDataCertificateProvider>(
                              roots, std::vector<grpc::experimental::IdentityKeyCertPair>{
                                         {pair->key, pair->certificate}}));
    options.watch_root_certs();
    if (pair != nullptr) options.watch_identity_key_cert_pairs();
    arguments.SetSslTargetNameOverride(kLeadPeer.DnsName());
    return grpc::CreateCustomChannel(listener_->address(),
                                     grpc::experimental::TlsCredentials(options), arguments);
  }

  // Returns the request with which WORKER joins. JOINED: the reply to its earlier Join; empty: none.
  static JoinRequest JoinOf(uint32_t worker, const JoinReply& joined) {
    const Partition partition = Partition::Make({{"w", {3}}}, 0, 1).value();
    JoinRequest request;
    request.set_job("train");
    request.set_worker(worker);
    request.set_incarnation(joined.incarnation());
    request.set_run(joined.run());
    request.set_servers(1);
    request.set_partition_hash(partition.hash());
    Tensor& tensor = *request.add_tensors();
    tensor.set_name("w");
    tensor.add_shape(3);
    return request;
  }

  // Expects that a client behind CHANNEL gets CODE for every method of the server.
  void ExpectRefusedEverywhere(const std::shared_ptr<grpc::Channel>& channel,
                               grpc::StatusCode code) {
    int checked_count = 0;
    for (const AccessRow& row : AccessTable()) {
      const MethodReply answer = CallMethod(channel, std::string(row.method));
      EXPECT_FALSE(answer.message.has_value()) << row.method;
      EXPECT_EQ(answer.status.error_code(), code)
          << row.method << ": " << answer.status.error_message();
      ++checked_count;
    }
    EXPECT_GT(checked_count, 10);
  }

  const bool plugins_ = EnablePlugins();
  const std::unique_ptr<TempDir> folder_ = TempDir::Make(testing::TempDir()).value();
  TestAuthority authority_{folder_->PathOf("authority")};
  SteadyClock clock_;
  JobThreads threads_;
  const std::unique_ptr<Job> job_ =
      MakeJob(TwoWorkers(), {.epoch = Epoch{5}, .token_key = "secret"}, clock_,
              threads_.executors())
          .value();
  const std::unique_ptr<Listener> listener_ =
      Listener::Start(*job_, "127.0.0.1:0", authority_.Load(kLeadPeer)).value();
};

TEST_F(AccessTest, Promise8EveryMethodHasARowAndEveryRowAMethod) {
  const std::set<std::string> methods = MethodsOf(ChannelOf(kViewerPeer));
  std::set<std::string> rows;
  for (const AccessRow& row : AccessTable()) rows.insert(std::string(row.method));
  EXPECT_EQ(methods, rows);
  std::set<std::string> documented;
  for (const auto& [method, row] : DocumentedTable()) documented.insert(method);
  EXPECT_EQ(documented, rows);
}

TEST_F(AccessTest, Promise8EachPeerMayCallWhatTheDocumentedTableSays) {
  const std::map<std::string, std::vector<bool>> table = DocumentedTable();
  const std::set<std::string> methods = MethodsOf(ChannelOf(kViewerPeer));
  size_t checked_count = 0;
  for (size_t i = 0; i < kColumns.size(); ++i) {
    const auto channel = ChannelOf(kColumns[i]);
    for (const std::string& method : methods) {
      const MethodReply answer = CallMethod(channel, method);
      ASSERT_EQ(table.at(method).size(), kColumns.size()) << method;
      EXPECT_EQ(!IsDenied(answer), table.at(method)[i])
          << method << " as " << kColumns[i] << ": " << answer.status.error_message();
      ++checked_count;
    }
  }
  EXPECT_EQ(checked_count, kColumns.size() * methods.size());
}

TEST_F(AccessTest, Promise8WithoutACertificateNothingIsAllowed) {
  ExpectRefusedEverywhere(ChannelWith(nullptr), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AccessTest, Promise8InPlaintextNothingIsAllowed) {
  ExpectRefusedEverywhere(Credentials().Connect(listener_->address(), ServerId{0}, OwnConnection()),
                          grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AccessTest, Promise8WithTheCertificateOfAnotherAuthorityNothingIsAllowed) {
  TestAuthority other(folder_->PathOf("other"));
  const KeyPair pair = other.Issue(kLeadPeer);
  ExpectRefusedEverywhere(ChannelWith(&pair), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AccessTest, Promise8WithAnExpiredCertificateNothingIsAllowed) {
  const KeyPair pair = authority_.Issue(kLeadPeer, -absl::Hours(1));
  ExpectRefusedEverywhere(ChannelWith(&pair), grpc::StatusCode::UNAVAILABLE);
}

// Returns the error code of a call, and sets RESUMED to whether its TLS session was resumed.
grpc::StatusCode CallStatus(const std::shared_ptr<grpc::Channel>& channel, bool& resumed) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
  StatusReply reply;
  const grpc::Status status = Control::NewStub(channel)->Status(&context, StatusRequest(), &reply);
  const auto values = context.auth_context()->FindPropertyValues(GRPC_SSL_SESSION_REUSED_PROPERTY);
  resumed = values.size() == 1 && values[0] == "true";
  return status.error_code();
}

TEST_F(AccessTest, Promise8AnExpiredCertificateGetsInByNeitherAnOpenNorAResumedConnection) {
  const absl::Duration validity = absl::Seconds(10);
  const KeyPair pair = authority_.Issue(kViewerPeer, validity);
  const absl::Time end = absl::Now() + validity;
  grpc_ssl_session_cache* const cache = grpc_ssl_session_cache_create_lru(8);
  grpc::ChannelArguments arguments = OwnConnection();
  const grpc_arg_pointer_vtable* const vtable =
      grpc_ssl_session_cache_create_channel_arg(cache).value.pointer.vtable;
  arguments.SetPointerWithVtable(GRPC_SSL_SESSION_CACHE_ARG, cache, vtable);
  const auto open = ChannelWith(&pair, arguments);
  bool resumed = true;
  ASSERT_EQ(CallStatus(open, resumed), grpc::StatusCode::OK);
  ASSERT_FALSE(resumed);
  ASSERT_EQ(CallStatus(ChannelWith(&pair, arguments), resumed), grpc::StatusCode::OK);
  ASSERT_TRUE(resumed);
  // The server checks a certificate again after kCredentialsRefresh.
  absl::SleepFor(end + kCredentialsRefresh + absl::Seconds(1) - absl::Now());
  EXPECT_EQ(CallStatus(open, resumed), grpc::StatusCode::UNAUTHENTICATED);
  // A resumed session does not get past the handshake.
  EXPECT_EQ(CallStatus(ChannelWith(&pair, arguments), resumed), grpc::StatusCode::UNAVAILABLE);
  grpc_ssl_session_cache_destroy(cache);
}

TEST_F(AccessTest, Promise8TheCertificatesOfARemovedAuthorityAreRefusedOnOpenConnections) {
  const auto open = ChannelOf(kViewerPeer);
  bool resumed = false;
  ASSERT_EQ(CallStatus(open, resumed), grpc::StatusCode::OK);
  TestAuthority next(folder_->PathOf("next"));
  ASSERT_EQ(WritePemFiles(authority_.DirOf(kLeadPeer),
                          CredentialFiles(next.pair().certificate, next.Issue(kLeadPeer)),
                          /*replace=*/true),
            absl::OkStatus());
  grpc::StatusCode code = grpc::StatusCode::OK;
  for (int attempt = 0; attempt < 300 && code == grpc::StatusCode::OK; ++attempt) {
    absl::SleepFor(absl::Milliseconds(100));
    code = CallStatus(open, resumed);
  }
  EXPECT_EQ(code, grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, Promise8AStreamEndsWithTheCertificateThatOpenedIt) {
  const KeyPair pair = authority_.Issue(kWorker0Peer, absl::Seconds(10));
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Minutes(2)));
  const auto stream = ParameterService::NewStub(ChannelWith(&pair))->Exchange(&context);
  const MethodReply join = CallMethod(ChannelOf(kWorker0Peer), "/thinwire.Control/Join",
                                      JoinOf(0, JoinReply()).SerializeAsString());
  JoinReply joined;
  ASSERT_TRUE(joined.ParseFromString(join.message.value_or(""))) << join.status.error_message();
  WorkerMessage frame;
  frame.set_incarnation(joined.incarnation());
  frame.set_generation(joined.generation());
  frame.set_epoch(5);
  int written_count = 0;
  while (stream->Write(frame) && ++written_count < 1000) absl::SleepFor(absl::Milliseconds(100));
  ServerMessage answer;
  while (stream->Read(&answer)) {
  }
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::ABORTED) << status.error_message();
  EXPECT_THAT(status.error_message(), testing::HasSubstr("certificate has expired"));
  EXPECT_GT(written_count, 1);
}

TEST_F(AccessTest, Promise9PeersReplaceTheirConnectionsAndSeeNewCertificates) {
  const auto listener = Listener::Start(*job_, "127.0.0.1:0", authority_.Load(kLeadPeer),
                                        /*max_connection_age=*/absl::Milliseconds(200));
  ASSERT_TRUE(listener.ok()) << listener.status();
  const auto stub = Control::NewStub(
      authority_.Load(kViewerPeer).Connect((*listener)->address(), ServerId{0}, OwnConnection()));
  // Returns the certificate of the server on the connection of the next call.
  const auto shown = [&]() -> std::string {
    grpc::ClientContext context;
    context.set_deadline(absl::ToChronoTime(absl::Now() + absl::Seconds(30)));
    StatusReply reply;
    const grpc::Status status = stub->Status(&context, StatusRequest(), &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    const auto values =
        context.auth_context()->FindPropertyValues(GRPC_X509_PEM_CERT_PROPERTY_NAME);
    return values.size() == 1 ? std::string(values[0].data(), values[0].size()) : "";
  };
  const std::string first = shown();
  ASSERT_NE(first, "");
  authority_.Write(kLeadPeer);
  std::string last = first;
  for (int attempt = 0; attempt < 300 && last == first; ++attempt) {
    absl::SleepFor(absl::Milliseconds(100));
    last = shown();
  }
  EXPECT_NE(last, first);
}

TEST_F(AccessTest, Promise8WithTheCertificateOfAnotherJobNothingIsAllowed) {
  for (Identity peer : kColumns) {
    peer.job = "other";
    const KeyPair pair = authority_.Issue(peer);
    ExpectRefusedEverywhere(ChannelWith(&pair), grpc::StatusCode::UNAVAILABLE);
  }
}

TEST_F(AccessTest, Promise8MethodsThatDoNotExistAreRefused) {
  for (const Identity& peer : kColumns) {
    const auto channel = ChannelOf(peer);
    for (const char* method :
         {"/thinwire.Control/Unknown", "/grpc.channelz.v1.Channelz/GetServers"}) {
      EXPECT_EQ(CallMethod(channel, method).status.error_code(), grpc::StatusCode::UNIMPLEMENTED)
          << peer;
    }
  }
}

TEST_F(AccessTest, Promise8ANumberedCertificateActsForItsWorkerOnly) {
  struct Case {
    Identity peer;
    uint32_t worker;
    bool allowed;
  };
  for (const Case& c : {Case{kWorker0Peer, 0, true}, Case{kWorker0Peer, 1, false}}) {
    const auto channel = ChannelOf(c.peer);
    const auto expect = [&](const char* method, const auto& message) {
      const MethodReply answer = CallMethod(channel, method, message.SerializeAsString());
      EXPECT_EQ(!IsDenied(answer), c.allowed) << method << ", worker " << c.worker << " as "
                                              << c.peer << ": " << answer.status.error_message();
    };
    JoinRequest join;
    join.set_job("train");
    join.set_worker(c.worker);
    expect("/thinwire.Control/Join", join);
    HeartbeatRequest heartbeat;
    heartbeat.set_worker(c.worker);
    expect("/thinwire.Control/Heartbeat", heartbeat);
    LeaveRequest leave;
    leave.set_worker(c.worker);
    expect("/thinwire.Control/Leave", leave);
    WorkerMessage frame;
    frame.set_worker(c.worker);
    frame.set_epoch(5);
    expect("/thinwire.ParameterService/Exchange", frame);
  }
}

// The process of a worker that shares its certificate with the other workers.
class SharedCertificateTest : public AccessTest {
 protected:
  struct Process {
    uint32_t worker = 0;
    JoinReply joined;  // the reply to its Join
  };
  // The result of each call that acts for a process.
  struct Answers {
    MethodReply join, heartbeat, exchange, leave;

    int denied_count() const {
      return IsDenied(join) + IsDenied(heartbeat) + IsDenied(exchange) + IsDenied(leave);
    }
  };

  MethodReply CallJoin(const Process& process, const std::string& token) {
    return CallMethod(channel_, "/thinwire.Control/Join",
                      JoinOf(process.worker, process.joined).SerializeAsString(), token);
  }
  MethodReply CallHeartbeat(const Process& process, const std::string& token, uint64_t epoch = 5) {
    HeartbeatRequest request;
    request.set_worker(process.worker);
    request.set_incarnation(process.joined.incarnation());
    request.set_epoch(epoch);
    return CallMethod(channel_, "/thinwire.Control/Heartbeat", request.SerializeAsString(), token);
  }
  // Joins as a new process, which has no token.
  Process JoinNew(uint32_t worker) {
    Process process = {.worker = worker, .joined = {}};
    const MethodReply answer = CallJoin(process, "");
    EXPECT_TRUE(process.joined.ParseFromString(answer.message.value_or("")))
        << answer.status.error_message();
    EXPECT_EQ(process.joined.token().size(), 24u);
    return process;
  }
  // Acts as PROCESS with TOKEN. Leaves the job last.
  Answers ActAs(const Process& process, const std::string& token) {
    WorkerMessage frame;
    frame.set_worker(process.worker);
    frame.set_incarnation(process.joined.incarnation());
    frame.set_generation(process.joined.generation());
    frame.set_epoch(5);
    LeaveRequest leave;
    leave.set_worker(process.worker);
    leave.set_incarnation(process.joined.incarnation());
    leave.set_run(process.joined.run());
    const auto call = [&](const char* method, const auto& message) {
      return CallMethod(channel_, method, message.SerializeAsString(), token);
    };
    return {.join = CallJoin(process, token),
            .heartbeat = CallHeartbeat(process, token),
            .exchange = call("/thinwire.ParameterService/Exchange", frame),
            .leave = call("/thinwire.Control/Leave", leave)};
  }

  const std::shared_ptr<grpc::Channel> channel_ = ChannelOf(kWorkerPeer);
};

TEST_F(SharedCertificateTest, Promise8OnlyTheTokenOfAProcessGivesAccessToIt) {
  const Process earlier = JoinNew(0);
  EXPECT_EQ(ActAs(earlier, earlier.joined.token()).denied_count(), 0);
  const Process worker0 = JoinNew(0);
  const Process worker1 = JoinNew(1);
  ASSERT_GT(worker0.joined.incarnation(), earlier.joined.incarnation());
  for (const std::string& token :
       {std::string(), std::string(24, 'x'), worker1.joined.token(), earlier.joined.token(),
        worker0.joined.token().substr(1), worker0.joined.token() + "x"}) {
    EXPECT_EQ(ActAs(worker0, token).denied_count(), 4);
  }
  // Nothing has changed.
  const MethodReply status = CallMethod(channel_, "/thinwire.Control/Status");
  StatusReply reply;
  ASSERT_TRUE(reply.ParseFromString(status.message.value_or("")));
  ASSERT_EQ(reply.workers_size(), 2);
  EXPECT_TRUE(reply.workers(0).live() && reply.workers(1).live());
  EXPECT_EQ(reply.workers(0).incarnation(), worker0.joined.incarnation());
  EXPECT_EQ(ActAs(worker0, worker0.joined.token()).denied_count(), 0);
  EXPECT_EQ(ActAs(worker1, worker1.joined.token()).denied_count(), 0);
}

TEST_F(SharedCertificateTest, AWorkerOfALostRunLearnsThatTheStateIsLost) {
  Process worker0 = JoinNew(0);
  worker0.joined.set_run(worker0.joined.run() + 1);
  const MethodReply heartbeat = CallHeartbeat(worker0, "", /*epoch=*/4);
  HeartbeatReply reply;
  ASSERT_TRUE(reply.ParseFromString(heartbeat.message.value_or("")));
  EXPECT_EQ(reply.epoch(), 5u);
  const MethodReply join = CallJoin(worker0, "");
  EXPECT_EQ(join.status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(join.status.error_message(), testing::HasSubstr("lost its state"));
}

TEST_F(AccessTest, Promise8AClientRefusesTheCertificateOfAnotherServer) {
  const auto channel =
      authority_.Load(kViewerPeer).Connect(listener_->address(), ServerId{1}, OwnConnection());
  const MethodReply answer = CallMethod(channel, "/thinwire.Control/Status");
  EXPECT_EQ(answer.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(answer.status.error_message(),
              testing::HasSubstr("Hostname Verification Check failed"));
}

}  // namespace
}  // namespace thinwire

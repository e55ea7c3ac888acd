// Calls every method of a server with mutual TLS as every kind of peer, and compares the result
// with the table in docs/security.md. The services of the server come from its reflection, so a new
// method without a row fails this test.
#include "server/edge/access.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
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
#include "common/ids.h"
#include "common/partition.h"
#include "common/spec/job_spec.h"
#include "common/spec/rule.h"
#include "common/time/clock.h"
#include "common/tls/authority.h"
#include "common/tls/identity.h"
#include "proto/control.grpc.pb.h"
#include "proto/grpc_credentials.h"
#include "proto/parameter_service.grpc.pb.h"
#include "server/edge/job.h"
#include "server/edge/listener.h"
#include "server/edge/make_job.h"
#include "server/edge/testing/call_method.h"
#include "tests/test_authority.h"

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
  std::shared_ptr<grpc::Channel> ChannelWith(const KeyPair* pair) {
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
    grpc::ChannelArguments arguments = OwnConnection();
    arguments.SetSslTargetNameOverride(kLeadPeer.DnsName());
    return grpc::CreateCustomChannel(listener_->address(),
                                     grpc::experimental::TlsCredentials(options), arguments);
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
  const std::unique_ptr<Job> job_ =
      MakeJob(TwoWorkers(), {.epoch = Epoch{5}, .token_key = "secret"}, clock_).value();
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

TEST_F(AccessTest, Promise8WithTheCertificateOfAnotherJobNothingIsAllowed) {
  for (Identity peer : kColumns) {
    peer.job = "other";
    const KeyPair pair = authority_.Issue(peer);
    ExpectRefusedEverywhere(ChannelWith(&pair), grpc::StatusCode::PERMISSION_DENIED);
  }
}

TEST_F(AccessTest, Promise8MethodsThatDoNotExistAreRefused) {
  for (const Identity& peer : kColumns) {
    const auto channel = ChannelOf(peer);
    EXPECT_TRUE(IsDenied(CallMethod(channel, "/thinwire.Control/Unknown"))) << peer;
    EXPECT_TRUE(IsDenied(CallMethod(channel, "/grpc.channelz.v1.Channelz/GetServers"))) << peer;
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
    const Partition partition = Partition::Make({{"w", {3}}}, 0, 1).value();
    JoinRequest request;
    request.set_job("train");
    request.set_worker(process.worker);
    request.set_incarnation(process.joined.incarnation());
    request.set_run(process.joined.run());
    request.set_servers(1);
    request.set_partition_hash(partition.hash());
    Tensor& tensor = *request.add_tensors();
    tensor.set_name("w");
    tensor.add_shape(3);
    return CallMethod(channel_, "/thinwire.Control/Join", request.SerializeAsString(), token);
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
    EXPECT_EQ(process.joined.token().size(), 16u);
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
       {std::string(), std::string(16, 'x'), worker1.joined.token(), earlier.joined.token(),
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

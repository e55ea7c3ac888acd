// FakeControlServer serves the Control service (proto/control.proto) in the process of a test.
#ifndef THINWIRE_CLI_RPC_FAKE_CONTROL_SERVER_H_
#define THINWIRE_CLI_RPC_FAKE_CONTROL_SERVER_H_

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "proto/control.grpc.pb.h"

namespace thinwire {

// A fake server that has the masters of one tensor.
class FakeControlServer final : public Control::Service {
 public:
  FakeControlServer(
      std::string tensor, std::string values,
      std::shared_ptr<grpc::ServerCredentials> credentials = grpc::InsecureServerCredentials())
      : tensor_(std::move(tensor)), values_(std::move(values)) {
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", std::move(credentials), &port_);
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }

  grpc::Status Status(grpc::ServerContext*, const StatusRequest*, StatusReply* reply) override {
    reply->set_accepted_pushes(7);
    reply->set_target_workers(target_workers);
    reply->set_wished_workers(wished_workers);
    ++status_count;
    if (generations_until_back > 0 && --generations_until_back == 0) ++generation;
    reply->set_generation(generation);
    ShardStatus& shard = *reply->add_shards();
    shard.set_values(values_.size() / 4 + extra_values);
    shard.set_frontier(frontier);
    if (!asked.HasBeenNotified()) asked.Notify();
    return grpc::Status::OK;
  }

  // Accepts up to 64 workers.
  grpc::Status Scale(grpc::ServerContext*, const ScaleRequest* request,
                     ScaleReply* reply) override {
    ++scale_count;
    if (request->workers() > 64) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "workers: out of range");
    }
    reply->set_workers(target_workers.exchange(request->workers()));
    return grpc::Status::OK;
  }

  // Keeps the settings. Accepts fewer than 64 backup workers, and mode async only with force.
  grpc::Status SetMode(grpc::ServerContext*, const SetModeRequest* request,
                       SetModeReply* reply) override {
    if (request->consistency().backup() >= 64) {
      return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "backup: must be below 64");
    }
    if (request->consistency().mode() == Consistency::Mode::async) {
      if (!request->force()) {
        return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "momentum: may diverge");
      }
      reply->add_warnings("momentum: may diverge");
    }
    mode = request->consistency();
    reply->set_mode("sync");
    reply->set_step(40);
    return grpc::Status::OK;
  }

  grpc::Status SaveCheckpoint(grpc::ServerContext*, const SaveCheckpointRequest* request,
                              SaveCheckpointReply* reply) override {
    save_request = *request;
    *reply = saved;
    return save_status;
  }

  grpc::Status RestoreCheckpoint(grpc::ServerContext*, const RestoreCheckpointRequest* request,
                                 RestoreCheckpointReply* reply) override {
    restore_step = request->step();
    reply->set_generation(restored_generation);
    return grpc::Status::OK;
  }

  // Keeps the request.
  grpc::Status Drain(grpc::ServerContext*, const DrainRequest* request, DrainReply*) override {
    if (request->worker() == 7) {
      return grpc::Status(grpc::StatusCode::FAILED_PRECONDITION, "worker 7: not live");
    }
    drained = *request;
    return grpc::Status::OK;
  }

  grpc::Status Masters(grpc::ServerContext*, const MastersRequest*,
                       grpc::ServerWriter<MastersChunk>* out) override {
    for (size_t at = 0; at < values_.size(); at += 4) {
      MastersChunk chunk;
      chunk.set_tensor(tensor_);
      chunk.set_offset(at / 4);
      chunk.set_values(values_.substr(at, 4));
      out->Write(chunk);
    }
    return grpc::Status::OK;
  }

  int port() const { return port_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", port_); }
  void Stop() { server_->Shutdown(); }

  uint64_t extra_values = 0;
  uint64_t frontier = 0;
  std::atomic<uint32_t> target_workers = 0;
  std::atomic<uint32_t> wished_workers = 0;
  std::atomic<uint64_t> status_count = 0;  // calls of Status
  std::atomic<uint64_t> scale_count = 0;   // calls of Scale
  std::optional<Consistency> mode;         // of the last SetMode
  absl::Notification asked;
  std::atomic<uint64_t> generation = 1;
  std::atomic<int> generations_until_back = 0;  // calls of Status until `generation` is raised
  SaveCheckpointReply saved;
  grpc::Status save_status;
  std::optional<SaveCheckpointRequest> save_request;
  uint64_t restored_generation = 0;
  uint64_t restore_step = 0;
  std::optional<DrainRequest> drained;  // read it only after the call has ended

 private:
  const std::string tensor_;
  const std::string values_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

}  // namespace thinwire

#endif  // THINWIRE_CLI_RPC_FAKE_CONTROL_SERVER_H_

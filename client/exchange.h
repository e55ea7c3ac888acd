// Exchange: a client's part in the data streams, all its servers together. Gradients go in, pushes
// go out; verdicts and parameters come back and are told to the rendezvous.
//
//   StepGradients -> PushEncoder -> Outbox -> Link ... Link -> StepVerdicts, Replica -> Rendezvous
//
// What a server says that does not belong to anything it was asked is dropped: it answers a message
// that was sent twice. What it cannot say (another epoch, a payload of the wrong length) is a
// failure, and a failure is final.
#ifndef THINWIRE_CLIENT_EXCHANGE_H_
#define THINWIRE_CLIENT_EXCHANGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/codec_tuner.h"
#include "client/gradient_clip.h"
#include "client/hearing.h"
#include "client/heartbeats.h"
#include "client/link.h"
#include "client/loop.h"
#include "client/options.h"
#include "client/outbox.h"
#include "client/push_encoder.h"
#include "client/put_backs.h"
#include "client/rendezvous.h"
#include "client/replica.h"
#include "client/report.h"
#include "client/step_gradients.h"
#include "client/step_verdicts.h"
#include "client/transport.h"
#include "client/waits.h"
#include "common/ids.h"
#include "common/partition.h"
#include "proto/frame.h"

namespace thinwire::client {

// Lives on its loop; made before its first task there, destroyed when the loop has stopped.
class Exchange {
 public:
  // What an exchange works with; all of it outlives the exchange.
  struct Parts {
    const ClientOptions& options;
    const Partition& partition;
    Transport& transport;
    std::shared_ptr<Loop> loop;
    Replica& replica;
    PushEncoder& encoder;
    CodecTuner* tuner;  // null: the push codecs are not chosen
    Rendezvous& rendezvous;
    Report& report;
  };

  // REPLIES: one per server.
  Exchange(Parts parts, std::vector<JoinReply> replies);

  // Seeds what has no values with the replica's, reads every shard for FIRST, begins heartbeats.
  void Start(Step first);
  void BeginStep(Step step, uint32_t examples, float scale);
  void Ready(uint32_t tensor, std::span<const float> gradient, std::shared_ptr<const void> owner);
  // Ends every wait with STATUS, for good. REQUIRES: not OK.
  void Fail(absl::Status status);
  // Ends streams and heartbeats.
  void Stop();

  // Whether what was pushed may still change what is owed: before the parameters have come.
  bool puts_back() const { return put_backs_.pending(); }

  // The server whose loss is the failure, if one is.
  std::optional<ServerId> lost() const { return lost_; }

 private:
  // One server's.
  struct Peer {
    Epoch epoch;
    Outbox outbox;
    std::unique_ptr<Link> link;
  };

  void MakePeers(const std::vector<JoinReply>& replies);
  void MakeHeartbeats(const JoinReply& lead);
  Outbox& OutboxOf(ShardId shard);
  void ReadShard(ShardId shard, Step step);
  ByteChain NextFrame(ServerId server);
  void EncodeSoon();
  bool MayBegin();
  void EncodeOne();
  absl::Status BeginPush();
  void SendPush(PushEncoder::Encoded encoded);

  void OnFrame(ServerId server, const ByteChain& bytes);
  void OnVerdict(ServerId server, const VerdictEntry& verdict);
  void OnParameters(ServerId server, const ParametersEntry& entry);
  void PutBack(const PutBacks::Outcome& outcome);
  void OnLost(ServerId server, const absl::Status& status);
  void OnHeartbeat(ServerId server, const absl::StatusOr<HeartbeatReply>& reply);
  void CountVerdict(const VerdictEntry& verdict);
  void FinishStep();
  void Tune();

  // Whether GENERATION and EPOCH are those that were joined; if not, fails.
  bool IsSameJob(ServerId server, Generation generation, Epoch epoch);
  void Tick();
  std::string Awaited(ServerId server) const;
  void FailLost(const Hearing::Loss& loss);

  const Parts parts_;
  const Incarnation incarnation_;
  const Generation generation_;
  std::vector<Peer> peers_;
  std::unique_ptr<Heartbeats> heartbeats_;
  absl::Duration tick_interval_;

  StepGradients gradients_;
  GradientClip clip_;
  StepVerdicts verdicts_;
  PutBacks put_backs_;
  Waits waits_;
  Hearing hearing_;
  absl::Time last_tick_;
  Step reading_;  // the step whose parameters are to come
  uint32_t examples_ = 0;
  bool encode_posted_ = false;
  bool stopped_ = false;
  std::optional<ServerId> lost_;
};

}  // namespace thinwire::client

#endif  // THINWIRE_CLIENT_EXCHANGE_H_

#include "worker/process/worker_flags.h"

namespace thinwire {

void AddFlags(CommandFlags command, WorkerFlags& flags) {
  command.Add("--config", flags.config, "The job file (proto/job.proto in text format)")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG")
      .Required();
  command
      .Add(
          "--worker", flags.worker,
          "The number of this worker, from 0 to workers - 1; more after thinwire scale. No two "
          "processes share one. auto: server 0 chooses a free one, first of those with a folder in "
          "--state_dir. Default: 0")
      .Type("NUMBER|auto")
      .Environment("THINWIRE_WORKER");
  AddSite(command, flags.site,
          "--worker is then a number within the site, and --addresses is the address of the "
          "aggregator");
  AddAddresses(command, flags.connection, ". Required, except with --evaluate");
  AddCredentials(command, flags.connection, "", ", for servers with mutual TLS");
  AddInsecure(command, flags.connection,
              "Calls servers on other machines without credentials: everybody on the way can read "
              "and change the model");
  command
      .AddSwitch("--wait_for_servers", flags.wait_for_servers,
                 "Waits without a limit for servers that cannot be reached yet, until the worker "
                 "has joined. Default: start_timeout_seconds of the job file")
      .Environment("THINWIRE_WAIT_FOR_SERVERS");
  AddBandwidth(command, flags.bandwidth, "this worker");
  command
      .Add(
          "--state_dir", flags.state_dir,
          "The folder in which the worker keeps its state (residuals, loss scale, buffers, slots), "
          "in DIR/worker-N: before each step of which the servers make a checkpoint, and when "
          "SIGTERM ends it. The next process of this worker continues from it, and so does "
          "this process if the servers continue from an earlier step. Without it, the state "
          "ends with the process")
      .Type("DIR")
      .Environment("THINWIRE_STATE_DIR");
  command
      .Add("--delay", flags.delay,
           "Added to every step, such as 50ms, to imitate a slow machine. Default: the "
           "straggler of the job file")
      .Type("DURATION")
      .Environment("THINWIRE_DELAY");
  const Flag output =
      command
          .Add("--output", flags.output,
               "The file to which the evaluating worker writes the trained model, as safetensors "
               "with the names of PyTorch's state_dict. Without it, no model is written")
          .Type("FILE")
          .Environment("THINWIRE_OUTPUT");
  command
      .Add(
          "--keep", flags.keep,
          "The parameters that --output gets: the final ones, or those with the highest test "
          "accuracy, with loss: script the lowest test loss, at the end of an epoch. Default: last")
      .Type("last|best")
      .OneOf({"last", "best"})
      .Needs(output)
      .Environment("THINWIRE_KEEP");
  command
      .Add("--evaluate", flags.evaluate,
           "Reports the test accuracy and loss of this model file, a file of --output, and trains "
           "nothing")
      .Type("FILE");
  command
      .Add("--admin", flags.admin,
           "The host:port of the status page, metrics and health checks, in plaintext. Port "
           "0 takes a free port, which the log names. Default: none")
      .Type("ADDRESS")
      .Environment("THINWIRE_ADMIN");
  command
      .Add("--log_events", flags.log_events,
           "The events on standard output: all, at most five step events per second, or with "
           "every=N only every Nth step event, and no waiting events. The page, the metrics and "
           "--tensorboard get all. Default: all")
      .Type("all|every=N")
      .Environment("THINWIRE_LOG_EVENTS");
  command
      .Add("--tensorboard", flags.tensorboard,
           "The folder for TensorBoard's event files of this worker. Default: none")
      .Type("DIR")
      .Environment("THINWIRE_TENSORBOARD");
  command
      .Add("--trace", flags.trace,
           "The file for the trace of this worker, written at the end (thinwire trace). "
           "Default: none")
      .Type("FILE")
      .Environment("THINWIRE_TRACE");
}

}  // namespace thinwire

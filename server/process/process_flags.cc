#include "server/process/process_flags.h"

#include "common/spec/task_spec.h"

namespace thinwire {

void AddFlags(CommandFlags command, ServerFlags& flags) {
  command.Add("--config", flags.config, "The job file (proto/job.proto in text format)")
      .Type("FILE")
      .Environment("THINWIRE_CONFIG")
      .Required();
  command
      .Add("--server", flags.server,
           "The number of this server, from 0. Server 0 leads. Default: 0")
      .Type("NUMBER")
      .Environment("THINWIRE_SERVER");
  AddSite(command, flags.site,
          "The server is then the aggregator of the site: it folds the gradients of the site's "
          "workers and passes them on to the servers in --addresses");
  command
      .Add("--site_credentials", flags.site_credentials,
           "With --site, the folder with the certificate that the site's workers see, that of "
           "server 0 of the job NAME-site-N; --credentials then has the certificate of worker N")
      .Type("DIR")
      .Environment("THINWIRE_SITE_CREDENTIALS");
  AddAddresses(command, flags.connection,
               ". Server 0 of several servers requires it, because it calls the other servers, and "
               "so does an aggregator, whose addresses are those of the servers that it calls");
  command
      .Add("--listen", flags.listen,
           "The host:port to listen on. Port 0 takes a free port. Default: the entry of this "
           "server in --addresses, without --addresses 127.0.0.1:0")
      .Type("ADDRESS")
      .Environment("THINWIRE_LISTEN");
  AddCredentials(command, flags.connection, "",
                 ". The server then accepts only peers with a certificate of the job, over mutual "
                 "TLS");
  AddInsecure(command, flags.connection,
              "Listens on an address that other machines reach, without credentials: everybody who "
              "reaches the port can read and change the model");
  AddBandwidth(command, flags.bandwidth, "this server");
  command
      .Add("--threads", flags.threads,
           "The number of threads that run the shards. 0: one per core. Default: 0")
      .Type("COUNT")
      .Between(0u, kMaxThreads)
      .Environment("THINWIRE_THREADS");
  command
      .Add("--state_dir", flags.state_dir,
           "The folder in which the servers of this machine keep their state; required with "
           "durability: checkpoint and log. A server whose state is there continues from it")
      .Type("DIR")
      .Environment("THINWIRE_STATE_DIR");
  command
      .Add("--memory_budget", flags.memory_budget,
           "The most memory that this server may use, in bytes or with a unit, as in 8GB: "
           "parameters, received messages and connections. A worker whose model does not fit is "
           "refused. 0: the memory that is available at the start. Default: 0")
      .Type("BYTES")
      .Bytes()
      .Environment("THINWIRE_MEMORY_BUDGET");
  command
      .AddSwitch(
          "--replaceable", flags.replaceable,
          "Ends with exit code 75, not 0, after SIGTERM, for a scheduler that starts another "
          "server only after a failure")
      .Environment("THINWIRE_REPLACEABLE");
  command
      .Add("--admin", flags.admin,
           "The host:port of the status page, metrics and health checks, in plaintext. Port "
           "0 takes a free port, which the log names. Default: none")
      .Type("ADDRESS")
      .Environment("THINWIRE_ADMIN");
  command
      .Add("--trace", flags.trace,
           "The file for the trace of this server, written at the end (thinwire trace). "
           "Default: none")
      .Type("FILE")
      .Environment("THINWIRE_TRACE");
}

}  // namespace thinwire

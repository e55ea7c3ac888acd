// Manifests are the Kubernetes objects of one job, made from deploy/k8s. These files describe the
// job `train`; BUILD compiles them into the program.
//
//   deploy/k8s                     of the job exp1                          from
//   StatefulSet train-server       exp1-server-0, exp1-server-1, ...        name, servers
//   Job train-worker               exp1-worker-HASH                         name, workers
//   ConfigMap train-job            exp1-job-HASH (kustomize appends it)     name, job file
//   addresses                      exp1-server-0-0.exp1-servers:7000, ...   name, servers
//   Secrets, other objects         exp1-server-0, exp1-worker, exp1-data    name
//   selectors, labels              app.kubernetes.io/instance: exp1         name
//   preStop, grace periods         longer than the drain of the workers     drain_seconds
//
// A StatefulSet has one template for all of its pods, so each server has a StatefulSet of its own.
// Its pod mounts its own certificate only.
#ifndef THINWIRE_CLI_K8S_MANIFESTS_H_
#define THINWIRE_CLI_K8S_MANIFESTS_H_

#include <map>
#include <string>

#include "absl/status/status.h"
#include "common/spec/job_spec.h"

namespace thinwire {

struct ManifestOptions {
  std::string kube_namespace = "thinwire";
  std::string image;          // of all pods; empty: those of deploy/k8s
  std::string queue;          // the LocalQueue of Kueue; empty: none
  bool gpu_spot = false;      // workers with a GPU each on spot machines
  bool cert_manager = false;  // cert-manager issues the certificates
  bool insecure = false;      // no TLS

  // Errors: InvalidArgument "--namespace: ...".
  absl::Status Validate() const;
};

// Returns OK if the objects of JOB can exist in Kubernetes. Errors: InvalidArgument "name: ...".
absl::Status CheckNames(const JobSpec& job);

// Returns the files of a folder by their paths in it. `kubectl apply -k` starts the job JOB from
// the folder. The folder `setup` in it has the claim of the data, which outlives the job; the
// folder `state` a pod that converts the state of stopped servers. JOB_TEXT is the job file.
// REQUIRES: CheckNames and Validate found no problem.
std::map<std::string, std::string> Manifests(const JobSpec& job, const std::string& job_text,
                                             const ManifestOptions& options);

}  // namespace thinwire

#endif  // THINWIRE_CLI_K8S_MANIFESTS_H_

#!/usr/bin/env bash
# Builds the container image, and trains with a server and a worker in containers: without privileges, with a memory limit, and with
# a root file system that is read-only. The last line of the output is the result. Requires root, mmdebstrap, podman and runc.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."

fail() { echo "image_test.sh: $1" >&2; exit 1; }
export CONTAINERS_CONF=$PWD/tests/containers.conf
image=localhost/thinwire:dev
work=$(mktemp -d)
server=thinwire-test-$$
trap 'podman rm --force --ignore "$server" >/dev/null 2>&1; rm -rf "$work"' EXIT
chmod 755 "$work"
deploy/image.sh >"$work/build.log" 2>&1 || { tail -n 40 "$work/build.log" >&2; fail "deploy/image.sh failed"; }
podman image inspect --format '{{.Size}} bytes, user {{.User}}, labels {{.Labels}}' $image

run=(podman run --read-only --cap-drop all --security-opt no-new-privileges)
for program in thinwire thinwire-server thinwire-worker; do
  "${run[@]}" --rm --network none $image $program --version | head -n 1
done
"${run[@]}" --rm --network none $image rclone version | head -n 1
user=$("${run[@]}" --rm --network none $image id)
[[ $user = "uid=65532(nonroot) gid=65532(nonroot) "* ]] || fail "wrong user (expected 65532 of group 65532, got $user)"

cat >"$work/job.textproto" <<'JOB'
consistency { workers: 1 }
optimization { optimizer: sgd learning_rate: 0.1 }
task { model: softmax dataset: fashion_mnist train_examples: 6400 batch_size: 64 }
JOB
chmod 644 "$work/job.textproto"
job=(--volume "$work/job.textproto:/job.textproto:ro")
"${run[@]}" --detach --name "$server" --network none --memory 256m "${job[@]}" $image \
  thinwire-server --config /job.textproto --listen 127.0.0.1:7000 >/dev/null
"${run[@]}" --rm --network "container:$server" --memory 1g --tmpfs /tmp "${job[@]}" $image \
  thinwire-worker --config /job.textproto --addresses 127.0.0.1:7000 >"$work/events" || fail "the worker failed: $(tail -n 1 "$work/events")"
podman stop --time 30 "$server" >/dev/null
code=$(podman inspect --format '{{.State.ExitCode}}' "$server")
[ "$code" = 0 ] || fail "wrong exit code of the server after SIGTERM (expected 0, got $code)"
accuracy=$(sed -n 's/.*"final_test_accuracy":\([0-9.]*\).*/\1/p' "$work/events")
[ -n "$accuracy" ] || fail "no test accuracy in $(tail -n 1 "$work/events")"
echo "built and trained: test accuracy $accuracy"

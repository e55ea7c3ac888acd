# Hosts that are network namespaces, joined by a switch with links of limited rate. For the scripts of bench/ and tests/: the
# script sets these variables, then runs `source bench/namespaces.sh`.
#
#   script          the name of the script, for messages and to find its processes
#   prefix          the beginning of all namespaces' names, PURPOSE-PID: "twrace-$$"
#   work            the folder of temporary files, which is removed at the end
#   rate            the rate of every link, as tc writes it: 1gbit; none: no limit
#   round_trip      the round trip time between two hosts: 100ms; 0ms: none
#   loss            with a round trip, the probability that a packet is lost; default 0
#   bin_dir         the folder of the built programs
#   congestion      the TCP congestion control
#   buffer_limits   further arguments of sysctl, an array
#
# The namespaces and all processes in them end with the script, even if it is interrupted. Requires root and iproute2, and with a round
# trip bazel build //bench:delay_link.
if [ "$(id -u)" != 0 ]; then
  echo "$script: cannot create network namespaces (expected root, got user $(id -un))" >&2
  exit 69
fi
export PATH=$PATH:/usr/sbin:/sbin

# Removes the namespaces that a run of this script created, and kills the processes in these namespaces. Argument: PID
# of that run.
remove_namespaces() {
  local name
  for name in $(ip netns list 2> /dev/null | awk '{print $1}' | grep "^${prefix%-*}-$1-"); do
    ip netns pids "$name" 2> /dev/null | xargs -r kill -9 2> /dev/null
    ip netns delete "$name" 2> /dev/null
  done
  if [ -n "$switch" ]; then kill "$switch" 2> /dev/null && wait "$switch" 2> /dev/null; fi
  switch=""
}

clean_up() {
  trap '' INT TERM
  exec 2> /dev/null  # discards bash's messages about the killed processes
  remove_namespaces $$
  wait
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

switch=""  # the PID of delay_link
if [ "$round_trip" != 0ms ] && ! [[ $round_trip =~ ^[0-9]+ms$ && $rate =~ ^(none|[0-9]+[mg]bit)$ ]]; then
  echo "$script: --round_trip: not possible (expected such as 100ms, with a rate such as 100mbit or none, got $round_trip, $rate)" >&2
  exit 64
fi

for pid in $(ip netns list 2> /dev/null | sed -n "s/^${prefix%-*}-\([0-9]*\)-.*/\1/p" | sort -u); do
  grep -qs "$script" "/proc/$pid/cmdline" || remove_namespaces "$pid"
done

# Limits the rate at which a device sends. Arguments: namespace, device. The token bucket holds two of the largest
# segments that the kernel passes to a device at once. The queue is as long as the queue of a typical switch.
shape() {
  [ "$rate" = none ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 128kb latency 20ms
}

# Creates a host. Argument: NUMBER.
make_host() {
  local host=$prefix-h$1
  ip netns add "$host" &&
    ip netns exec "$host" sysctl -qw "net.ipv4.tcp_congestion_control=$congestion" "${buffer_limits[@]}" &&
    ip -n "$host" link set lo up
}

# Connects a host to the switch. Argument: NUMBER.
connect_host() {
  local host=$prefix-h$1
  ip -n "$prefix-switch" link add "port$1" type veth peer name eth0 netns "$host" &&
    ip -n "$prefix-switch" link set "port$1" master switch up &&
    shape "$prefix-switch" "port$1" && shape "$host" eth0
}

# Starts delay_link as the switch of hosts 1 to COUNT. The queue of a link holds 20 ms and the bytes of a round trip, as a router's.
# Argument: COUNT.
start_delay_link() {
  local milliseconds=${round_trip%ms} mbit=${rate%?bit} spaces=()
  case $rate in none) mbit=0 ;; *gbit) mbit=$((mbit * 1000)) ;; esac
  for i in $(seq "$1"); do spaces+=("$prefix-h$i"); done
  "$bin_dir/bench/delay_link" "$milliseconds" "$mbit" $((milliseconds + 20)) "${loss:-0}" "${spaces[@]}" > "$work/switch" &
  switch=$!
  for _ in $(seq 100); do
    grep -qs ready "$work/switch" && return
    kill -0 "$switch" 2> /dev/null || break
    sleep 0.05
  done
  echo "$script: delay_link did not start (build it with: bazel build //bench:delay_link)" >&2
  return 1
}

# Creates hosts 1 to COUNT with the addresses 10.77.0.NUMBER, and the switch. Argument: COUNT.
make_network() {
  local i
  for i in $(seq "$1"); do make_host "$i" || return 1; done
  if [ "$round_trip" != 0ms ]; then
    start_delay_link "$1" || return 1
  else
    ip netns add "$prefix-switch" && ip -n "$prefix-switch" link add switch type bridge &&
      ip -n "$prefix-switch" link set switch up || return 1
    for i in $(seq "$1"); do connect_host "$i" || return 1; done
  fi
  for i in $(seq "$1"); do
    ip -n "$prefix-h$i" address add "10.77.0.$i/24" dev eth0 &&
      ip -n "$prefix-h$i" link set eth0 up txqueuelen 10000 || return 1
  done
}

# Runs a command on a host. Arguments: number of the host, command.
on() {
  local host=$prefix-h$1
  shift
  exec ip netns exec "$host" "$@"
}

# Waits until a program has printed its address. Arguments: file with the program's output, PID of the program.
await_listening() {
  for _ in $(seq 200); do
    grep -qs '^listening ' "$1" && return
    kill -0 "$2" 2> /dev/null || break
    sleep 0.05
  done
  echo "$script: a server did not start; the last line of its log: $(tail -n 1 "$1.err")" >&2
  return 1
}

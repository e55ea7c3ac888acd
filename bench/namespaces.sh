# Hosts that are network namespaces, joined by a switch with links of limited rate. For the scripts of this folder: the
# script sets these variables, then runs `source bench/namespaces.sh`.
#
#   script          the name of the script, for messages and to find its processes
#   prefix          the beginning of all namespaces' names, PURPOSE-PID: "twrace-$$"
#   work            the folder of temporary files, which is removed at the end
#   rate            the rate of every link, as tc writes it: 1gbit; none: no limit
#   congestion      the TCP congestion control
#   buffer_limits   further arguments of sysctl, an array
#
# The namespaces and all processes in them end with the script, even if it is interrupted. Requires root and iproute2.
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

for pid in $(ip netns list 2> /dev/null | sed -n "s/^${prefix%-*}-\([0-9]*\)-.*/\1/p" | sort -u); do
  grep -qs "$script" "/proc/$pid/cmdline" || remove_namespaces "$pid"
done

# Limits the rate at which a device sends. Arguments: namespace, device. The token bucket holds two of the largest
# segments that the kernel passes to a device at once. The queue is as long as the queue of a typical switch.
shape() {
  [ "$rate" = none ] || tc -n "$1" qdisc add dev "$2" root tbf rate "$rate" burst 128kb latency 20ms
}

# Creates a host with the address 10.77.0.NUMBER and connects it to the switch. Argument: NUMBER.
make_host() {
  local host=$prefix-h$1
  ip netns add "$host" &&
    ip -n "$prefix-switch" link add "port$1" type veth peer name eth0 netns "$host" &&
    ip -n "$prefix-switch" link set "port$1" master switch up &&
    ip -n "$host" address add "10.77.0.$1/24" dev eth0 &&
    ip netns exec "$host" sysctl -qw "net.ipv4.tcp_congestion_control=$congestion" "${buffer_limits[@]}" &&
    ip -n "$host" link set eth0 up && ip -n "$host" link set lo up &&
    shape "$prefix-switch" "port$1" && shape "$host" eth0
}

# Creates the switch and hosts 1 to COUNT. Argument: COUNT.
make_network() {
  local i
  ip netns add "$prefix-switch" && ip -n "$prefix-switch" link add switch type bridge &&
    ip -n "$prefix-switch" link set switch up || return 1
  for i in $(seq "$1"); do make_host "$i" || return 1; done
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

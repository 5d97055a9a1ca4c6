#!/usr/bin/env bash
# Make this Debian machine a Slurm cluster of one node, so that sweeps with hydra/launcher=submitit_slurm can be tested.
#
#   sudo bash tests/slurm/setup_one_node.sh
#
# It installs Debian's slurm-wlm and munge, writes /etc/slurm/slurm.conf for this machine's name, CPUs and memory,
# starts munged, slurmctld and slurmd, waits until the node is idle and runs one job. The cluster has one partition,
# `main`, listens on the loopback address only, and keeps no accounts (no slurmdbd), so `sacct` does not work, and
# submitit does not see that a job was killed or cancelled: it waits. Ctrl-C then writes the summary; go on with resume.
# Run it again at any time, for example after a restart of the machine: it starts what does not run and changes
# nothing else. It refuses to write over a slurm.conf that is not its own.
#
# To stop the cluster: scontrol shutdown
# For tests, not for shared machines: everything runs as root.
set -euo pipefail

readonly CONF=/etc/slurm/slurm.conf
readonly MARK="# written by tests/slurm/setup_one_node.sh; changes will be lost"
readonly LOGS=/var/log/slurm
readonly STATE=/var/lib/slurm
readonly MUNGE_KEY=/etc/munge/munge.key
readonly PATIENCE=60 # seconds to wait for each daemon

say() { printf 'setup_one_node: %s\n' "$*"; }

fail() {
    printf 'setup_one_node: FAILED: %s\n' "$*" >&2
    for log in "$LOGS/slurmctld.log" "$LOGS/slurmd.log"; do
        if [ -s "$log" ]; then
            printf -- '--- end of %s\n' "$log" >&2
            tail -n 15 "$log" >&2
        fi
    done
    exit 1
}

# wait_for WHAT COMMAND...: until COMMAND succeeds
wait_for() {
    local what=$1
    shift
    for ((waited = 0; waited < PATIENCE; waited++)); do
        if "$@" >/dev/null 2>&1; then
            return
        fi
        sleep 1
    done
    fail "waited $PATIENCE s for $what"
}

install_packages() {
    if dpkg-query -W -f='${Status}\n' slurm-wlm munge 2>/dev/null | grep -c '^install ok installed$' | grep -qx 2; then
        say "slurm-wlm and munge are installed"
        return
    fi
    say "installing slurm-wlm and munge"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq || fail "apt-get update"
    apt-get install -y -qq --no-install-recommends slurm-wlm munge >/dev/null || fail "apt-get install slurm-wlm munge"
}

munge_works() { munge -n </dev/null | unmunge; }

start_munge() {
    if munge_works >/dev/null 2>&1; then
        say "munged runs"
        return
    fi
    say "starting munged"
    [ -s "$MUNGE_KEY" ] || fail "$MUNGE_KEY is not there; installing the package munge makes it"
    # /run is empty after a restart, and without systemd nobody else makes the folder
    install -d -o munge -g munge -m 0755 /run/munge
    setpriv --reuid=munge --regid=munge --clear-groups /usr/sbin/munged || fail "munged did not start"
    wait_for "munge to encode and decode a credential" munge_works
}

slurm_conf() {
    local name=$1 cpus=$2 memory=$3
    cat <<CONFIG
$MARK
ClusterName=one_node
SlurmctldHost=$name(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
# neither cgroups nor MPI: they are not there in most containers
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
# a job takes CPUs, not the whole node: jobs run side by side
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
# a node that was lost (a restart) comes back by itself
ReturnToService=2
AccountingStorageType=accounting_storage/none
StateSaveLocation=$STATE/slurmctld
SlurmdSpoolDir=$STATE/slurmd
SlurmctldPidFile=/run/slurmctld.pid
SlurmdPidFile=/run/slurmd.pid
SlurmctldLogFile=$LOGS/slurmctld.log
SlurmdLogFile=$LOGS/slurmd.log
# listen on the addresses named in this file, which are loopback: nothing outside this machine reaches the daemons
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
NodeName=$name NodeAddr=127.0.0.1 CPUs=$cpus RealMemory=$memory State=UNKNOWN
PartitionName=main Nodes=$name Default=YES MaxTime=INFINITE State=UP
CONFIG
}

# whether slurm.conf had to be written
write_conf() {
    local name cpus memory wanted
    # Slurm takes the part before the first dot
    name=$(hostname -s)
    cpus=$(slurmd -C | grep -oP '(?<= CPUs=)\d+' | head -n 1) || fail "slurmd -C does not tell the number of CPUs"
    # in MB; a little less than there is, because a node with less than it promised is taken out
    memory=$(awk '/^MemTotal:/ {print int($2 / 1024 * 0.95)}' /proc/meminfo)
    wanted=$(slurm_conf "$name" "$cpus" "$memory")
    if [ -e "$CONF" ] && [ "$(head -n 1 "$CONF")" != "$MARK" ]; then
        fail "$CONF is there and not this script's; this machine may belong to a real cluster"
    fi
    if [ -e "$CONF" ] && [ "$(cat "$CONF")" = "$wanted" ]; then
        say "$CONF is as it should be (node $name, $cpus CPUs, $memory MB)"
        return 1
    fi
    say "writing $CONF (node $name, $cpus CPUs, $memory MB)"
    install -d -m 0755 "$(dirname "$CONF")"
    printf '%s\n' "$wanted" >"$CONF"
}

controller_answers() { scontrol ping | grep -q 'is UP'; }

# runs PIDFILE NAME: whether the process of a pid file is alive and has that name
runs() { [ -s "$1" ] && [ "$(cat "/proc/$(cat "$1")/comm" 2>/dev/null)" = "$2" ]; }

stopped() { ! runs /run/slurmctld.pid slurmctld && ! runs /run/slurmd.pid slurmd; }

stop_slurm() {
    stopped && return
    say "stopping the daemons that run with the old slurm.conf"
    for daemon in slurmctld slurmd; do
        if runs "/run/$daemon.pid" "$daemon"; then
            kill "$(cat "/run/$daemon.pid")"
        fi
    done
    wait_for "slurmctld and slurmd to stop" stopped
}

start_slurm() {
    install -d -m 0755 "$LOGS" "$STATE/slurmctld" "$STATE/slurmd"
    if controller_answers 2>/dev/null; then
        say "slurmctld runs"
    else
        say "starting slurmctld"
        slurmctld || fail "slurmctld did not start"
        wait_for "slurmctld to answer" controller_answers
    fi
    if runs /run/slurmd.pid slurmd; then
        say "slurmd runs"
    else
        say "starting slurmd"
        slurmd || fail "slurmd did not start"
    fi
}

node_is_idle() { [ "$(sinfo --noheader --partition=main --format=%T)" = idle ]; }

# a node at work is as good as an idle one when the script is run again
node_is_up() { node_is_idle || sinfo --noheader --partition=main --format=%T | grep -qE '^(mixed|allocated|completing)$'; }

[ "$(id -u)" = 0 ] || fail "needs root: it installs packages and starts system daemons"
command -v apt-get >/dev/null || fail "needs a Debian machine: there is no apt-get"

install_packages
start_munge
if write_conf; then
    stop_slurm
fi
start_slurm
# a node that was drained, or went down for another reason than silence, stays so until told
scontrol update NodeName="$(hostname -s)" State=RESUME >/dev/null 2>&1 || true
wait_for "the node to be up" node_is_up
if node_is_idle; then
    answer=$(timeout "$PATIENCE" srun --partition=main --ntasks=1 hostname -s) || fail "the first job did not run"
    [ "$answer" = "$(hostname -s)" ] || fail "the first job answered '$answer'"
    wait_for "the node to be idle" node_is_idle
    say "a first job ran"
else
    say "the node is busy with other jobs"
fi
sinfo

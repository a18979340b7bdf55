# The node itself: its room, clock, tools and ports.

orch_df() {
    orch_f=$1
    until [ -d "$orch_f" ]; do
        orch_f=${orch_f%/*}
        orch_f=${orch_f:-/}
    done
    df -Pk -- "$orch_f"
    printf '\036'
    df -Pi -- "$orch_f"
    return 0
}

orch_tools() {
    for orch_f; do
        command -v "$orch_f" >/dev/null || printf '%s\036' "$orch_f"
    done
    orch_hashers || printf 'hash\036'
}

orch_uname() {
    uname -m
}

orch_date() {
    date +%s.%N
}

# the kernel gives this file in one piece, and the shell would read it in many
orch_ephemeral() {
    cat /proc/sys/net/ipv4/ip_local_port_range
}

orch_ports() {
    cat /proc/net/tcp /proc/net/tcp6
    return 0
}

# What a node does for its controller: functions for one long-lived POSIX shell, read from its standard input.
#
# A request is a line: nonce, number, call. Each answer stands between marks that bear both; what else is on
# the streams is noise. A function prints what it gives and returns 0; 1 with the reason in words where the node
# refuses; 2 where a mark of ours is missing; 3 where there is nothing; 6 where there is no plain file, or too large a one. Paths are absolute. Looks that are made again and again start no process.
# A failed redirection of a special builtin would end the shell: none has one.

exec 4>&2 2>/dev/null
unset CDPATH
[ -n "${PATH-}" ] || PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:/usr/sbin:/sbin
cd /
orch_nl='
'
orch_rs=$(printf '\036')
orch_boot=unknown
read -r orch_boot </proc/sys/kernel/random/boot_id
orch_exported= orch_hasher= orch_bytes= orch_running= orch_silent=

orch_serve() {
    while IFS= read -r orch_line; do
        case $orch_line in
        "$orch_nonce . "*)
            # asks for no answer
            eval "${orch_line#* . }"
            continue
            ;;
        "$orch_nonce "*) ;;
        *) continue ;;
        esac
        orch_line=${orch_line#* } orch_silent=
        orch_id=${orch_line%% *}
        printf '\n%s %s <\n' "$orch_nonce" "$orch_id"
        eval "${orch_line#* }"
        orch_code=$?
        [ -n "$orch_silent" ] || printf '\n%s %s %s\n' "$orch_nonce" "$orch_id" "$orch_code"
    done
    [ -z "$orch_running" ] || kill -TERM "$orch_running"
}

# who this shell is, and where
orch_hello() {
    orch_stat "$$"
    printf '%s\036' "$$" "$orch_ticks" "$orch_boot" "${HOME-}"
}

# ends shell $1, begun at $2 in boot $3, and what it does: behind a dead connection nobody tells it to
orch_relieve() {
    [ "$1" != "$$" ] && orch_alive "$@" || return 0
    if [ "$orch_group" = "$1" ]; then kill -TERM "-$1"; else kill -TERM "$1"; fi
    return 0
}

# What a node does for its controller: functions for one long-lived POSIX shell, read from its standard input.
#
# A request is a line: nonce, number, call. Each answer stands between marks that bear both; what else is on
# the streams is noise. A function prints what it gives and returns 0; 1 with the reason in words where the node
# refuses; 2 where a mark of ours is missing; 3 where there is nothing. Paths are absolute. Looks that are made again and again start no process.
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
    printf '%s\036' "$$" "$orch_boot" "${HOME-}"
}

# --- looks that start no process ---

# orch_text: what a small file holds; 1 if there is none, 2 if it cannot be read
orch_read() {
    orch_text= orch_l=
    [ -e "$1" ] || return 1
    [ -f "$1" ] && [ -r "$1" ] || return 2
    {
        while IFS= read -r orch_l; do orch_text=$orch_text$orch_l$orch_nl; done
        orch_text=$orch_text$orch_l
    } <"$1" || return 2
}

# state, group, terminal and start time in clock ticks of process $1; 1 if there is none
orch_stat() {
    orch_s= orch_l= orch_ticks=0
    [ -e "/proc/$1/stat" ] || return 1
    { while IFS= read -r orch_l; do orch_s=$orch_s$orch_l; done; } <"/proc/$1/stat" || return 1
    # the command's name may hold anything: fields are counted after its closing parenthesis
    orch_s=${orch_s##*)}
    set -f
    set -- $orch_s
    set +f
    [ $# -ge 20 ] || return 1
    orch_state=$1 orch_group=$3 orch_tty=$5
    shift 19
    orch_ticks=$1
}

# whether process $1, begun at $2 in boot $3, still is that process
orch_alive() {
    [ "${3-}" = "$orch_boot" ] && orch_stat "$1" && [ "$orch_ticks" = "$2" ] && [ "$orch_state" != Z ]
}

# orch_path: where $1 truly lies, as far as it is there
orch_real() {
    orch_path=$1 orch_rest=
    until CDPATH= cd -P "${orch_path:-/}"; do
        orch_rest=/${orch_path##*/}$orch_rest
        orch_path=${orch_path%/*}
    done
    orch_path=${PWD%/}$orch_rest
    cd /
}

orch_resolve() {
    orch_real "$1"
    printf %s "$orch_path"
}

# orch_root: the nearest folder with our owner's mark that $1 truly lies in, or $1 itself; 1 if there is none
orch_marked() {
    case $1 in */..) return 1 ;; esac
    orch_real "${1%/*}"
    orch_root=${orch_path%/}/${1##*/}
    while :; do
        orch_mark=$orch_root/.orch-owner
        [ ! -f "$orch_mark" ] || [ -L "$orch_mark" ] || [ ! -O "$orch_mark" ] || return 0
        [ -n "$orch_root" ] || return 1
        orch_root=${orch_root%/*}
    done
}

orch_demand() {
    orch_marked "$1" || return 2
}

orch_there() {
    [ -e "$1" ] || [ -L "$1" ]
}

orch_texts() {
    for orch_f; do
        if orch_read "$orch_f"; then printf '1%s\036' "$orch_text"; else printf '0\036'; fi
    done
}

orch_list() {
    [ -d "$1" ] || return 3
    [ -r "$1" ] && [ -x "$1" ] || { printf 'Permission denied'; return 1; }
    for orch_f in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        orch_there "$orch_f" && printf '%s/' "${orch_f##*/}"
    done
    return 0
}

# --- files ---

orch_regular() {
    [ ! -L "$1" ] || { printf 'not a regular file'; return 1; }
    [ -e "$1" ] || return 3
    [ -f "$1" ] || { printf 'not a regular file'; return 1; }
    [ -r "$1" ] || { printf 'Permission denied'; return 1; }
}

orch_get() {
    orch_regular "$1" || return
    orch_size=$(wc -c <"$1") || { printf 'cannot be read'; return 1; }
    orch_size=$((orch_size))
    printf '%s\n' "$orch_size"
    orch_first "$orch_size" <"$1"
}

orch_head() {
    orch_regular "$1" || return
    orch_first "$2" <"$1"
}

orch_tail() {
    orch_regular "$1" || return
    tail -c "$2" <"$1"
}

# the first $1 bytes of standard input; what comes from the controller is followed by nothing
orch_first() {
    [ "$1" != 0 ] || return 0
    if [ -z "$orch_bytes" ]; then
        if [ "$(printf abc | head -c 2)" = ab ]; then orch_bytes=head; else orch_bytes=dd; fi
    fi
    if [ "$orch_bytes" = head ]; then head -c "$1"; else dd bs=1 count="$1"; fi
}

# orch_sum: SHA-256 of a file of $2 bytes, by whatever there is; 1 if there is nothing
orch_hash() {
    orch_hashers || return 1
    orch_h=$orch_hasher
    [ "$2" -lt 1048576 ] || [ -z "$orch_bulk" ] || orch_h=$orch_bulk
    orch_sum=$("orch_by_$orch_h" <"$1")
    orch_sum=${orch_sum%% *}
}

orch_hashers() {
    [ -z "$orch_hasher" ] || return 0
    orch_bulk=
    for orch_h in sha256sum openssl shasum busybox python3 python perl; do
        command -v "$orch_h" >/dev/null || continue
        case $("orch_by_$orch_h" </dev/null) in
        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855*) ;;
        *) continue ;;
        esac
        [ "$orch_h" != openssl ] || orch_bulk=openssl
        [ -n "$orch_hasher" ] || orch_hasher=$orch_h
        [ "$orch_h" = sha256sum ] || break
    done
    [ -n "$orch_hasher" ]
}

orch_by_sha256sum() { sha256sum; }
orch_by_openssl() { openssl dgst -sha256 -r; }
orch_by_shasum() { shasum -a 256; }
orch_by_busybox() { busybox sha256sum; }
orch_by_python3() { python3 -c 'import hashlib,sys;print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())'; }
orch_by_python() { python -c 'import hashlib,sys;print(hashlib.sha256(getattr(sys.stdin,"buffer",sys.stdin).read()).hexdigest())'; }
orch_by_perl() { perl -MDigest::SHA -e 'binmode STDIN;print Digest::SHA->new(256)->addfile(*STDIN)->hexdigest'; }

# a place for file $1 under its temporary name: orch_part
orch_place() {
    orch_demand "$1" || return
    orch_part=$1.part
    [ -d "${1%/*}" ] || orch_said mkdir -p -- "${1%/*}" || return
    [ ! -d "$1" ] || [ -L "$1" ] || { printf 'Is a directory'; return 1; }
    ! orch_there "$orch_part" || orch_said rm -rf -- "$orch_part" || return
    # mv would follow it
    [ ! -L "$1" ] || orch_said rm -f -- "$1"
}

# runs a command that says nothing where all is well; prints why it failed
orch_said() {
    orch_e=$("$@" 2>&1 >/dev/null) && return
    printf %s "${orch_e:-$1 failed}"
    return 1
}

# takes what lies at orch_part to path $1 if it has digest $2 and size $3, with mode $4; 4 if it has not
orch_settle() {
    if ! orch_hash "$orch_part" "$3"; then
        printf 'no tool'
        orch_settled=5
    elif [ "$orch_sum" != "$2" ]; then
        printf %s "$orch_sum"
        orch_settled=4
    elif { [ "$4" = 600 ] || orch_said chmod "$4" "$orch_part"; } && orch_said mv -f -- "$orch_part" "$1"; then
        return 0
    else
        orch_settled=1
    fi
    rm -f -- "$orch_part"
    return "$orch_settled"
}

# path, digest, size, mode, whether to keep it for another upload; then the bytes
orch_put() {
    orch_place "$1" || {
        orch_code=$?
        orch_first "$3" >/dev/null
        return "$orch_code"
    }
    # a file that cannot be written leaves nothing behind on the stream
    orch_e=$({ orch_first "$3" | { umask 077; cat >"$orch_part" || { cat >/dev/null; exit 1; }; }; } 2>&1) || {
        rm -f -- "$orch_part"
        printf %s "${orch_e:-cannot be written}"
        return 1
    }
    orch_settle "$1" "$2" "$3" "$4" || return
    [ -z "$5" ] || orch_keep "$1" "$2"
}

# the same, with the bytes as lines for printf; `.` is the last
orch_put_text() {
    orch_e=
    orch_place "$1" || orch_e=$?
    [ -n "$orch_e" ] || { (umask 077; printf '' >"$orch_part") || { printf 'cannot be written'; orch_e=1; }; }
    while IFS= read -r orch_l && [ "$orch_l" != . ]; do
        [ -n "$orch_e" ] || printf "$orch_l" >>"$orch_part" || { printf 'cannot be written'; orch_e=1; }
    done
    [ -z "$orch_e" ] || return "$orch_e"
    orch_settle "$1" "$2" "$3" "$4"
}

orch_keep() {
    [ -d "$orch_root/.orch-cache" ] || mkdir -m 700 "$orch_root/.orch-cache"
    ln -f -- "$1" "$orch_root/.orch-cache/$2"
    return 0
}

# path, digest, size, mode: puts a file that was kept before; 3 if there is none
orch_put_kept() {
    orch_demand "$1" || return
    orch_kept=$orch_root/.orch-cache/$2
    [ -f "$orch_kept" ] || return 3
    orch_place "$1" || return
    (umask 077; cat <"$orch_kept" >"$orch_part") || { rm -f -- "$orch_part" "$orch_kept"; return 3; }
    orch_settle "$1" "$2" "$3" "$4" && return
    # whoever changed it has changed it in the cache as well
    [ "$orch_settled" != 4 ] || { rm -f -- "$orch_kept"; return 3; }
    return 1
}

# the mark of a root: path, content
orch_mark() {
    orch_part=${1%/*}/.${1##*/}.part
    ! orch_there "$orch_part" || orch_said rm -rf -- "$orch_part" || return
    orch_said orch_print "$2" "$orch_part" && orch_said mv -f -- "$orch_part" "$1"
}

orch_print() {
    umask 077
    printf %s "$1" >"$2"
}

orch_remove() {
    orch_real "${1%/*}"
    orch_path=${orch_path%/}/${1##*/}
    orch_there "$orch_path" || return 0
    orch_demand "$1" || return
    orch_path=${orch_path%/}/${1##*/}
    [ -d "$orch_path" ] && [ ! -L "$orch_path" ] || { printf 'Not a directory'; return 1; }
    orch_said rm -rf -- "$orch_path"
}

# --- folders and their lock ---

# makes folders of this user's alone where there is nothing
orch_make() {
    for orch_f; do
        orch_there "$orch_f" || orch_said mkdir -m 700 -- "$orch_f" || orch_there "$orch_f" || return 1
    done
}

# this user, then mode, owner and kind of each folder, as ls says
orch_looks() {
    id -u
    for orch_f; do
        printf '\036'
        ls -ldn -- "$orch_f" || return 1
    done
}

orch_lock_look() {
    orch_held=0
    orch_read "$1"
    orch_code=$?
    [ "$orch_code" != 2 ] || { printf 'cannot be read'; return 1; }
    orch_lock=$orch_text
    if [ "$orch_code" = 0 ]; then
        { read -r orch_l; read -r orch_l; read -r orch_l; read -r orch_a orch_b orch_c; } <"$1" &&
            orch_alive "$orch_a" "$orch_b" "$orch_c" && orch_held=1
        printf '1%s\036' "$orch_lock"
    else
        printf '0\036'
    fi
    read -r orch_up orch_l </proc/uptime
    orch_stat "$$"
    printf '%s\036' "$orch_held" "$orch_up" "$orch_boot" "$$" "$orch_ticks"
}

orch_lock_make() {
    (set -C; umask 077; exec 3>"$1"; printf %s "$2" >&3 || exit 9)
    case $? in
    0) return 0 ;;
    9) rm -f -- "$1" ;;
    *) ! orch_there "$1" || return 3 ;;
    esac
    printf 'cannot be written'
    return 1
}

orch_lock_replace() {
    orch_said orch_print "$2" "$1.$$" && orch_said mv -f -- "$1.$$" "$1"
}

orch_lock_free() {
    mv -f -- "$1" "$1.$$" || return 0
    orch_read "$1.$$"
    [ "$orch_text" = "$2" ] || ln -- "$1.$$" "$1"
    rm -f -- "$1.$$"
    return 0
}

# --- processes ---

# program, arguments: runs it in a session of its own; both streams are marked when it has ended
orch_run() {
    orch_silent=1
    printf '\n%s %s <\n' "$orch_nonce" "$orch_id" >&4
    (
        orch_p= orch_ended=
        trap 'orch_ended=1; [ -z "$orch_p" ] || kill -KILL "-$orch_p" || kill -KILL "$orch_p"' TERM
        setsid "$@" </dev/null 2>&4 4>&- &
        orch_p=$!
        [ -z "$orch_ended" ] || kill -KILL "$orch_p"
        wait "$orch_p"
        orch_code=$?
        while [ -n "$orch_ended" ] && kill -0 "$orch_p"; do wait "$orch_p"; done
        # what it left in its group would write among other answers
        kill -KILL "-$orch_p"
        printf '\n%s %s %s\n' "$orch_nonce" "$orch_id" "$orch_code" >&4
        printf '\n%s %s %s\n' "$orch_nonce" "$orch_id" "$orch_code"
    ) </dev/null &
    orch_running=$!
}

# ends what orch_run runs
orch_stop() {
    kill -TERM "$orch_running"
}

# ends it after $1 seconds, whether the controller is there or not
orch_guard() {
    (
        orch_i=0
        while [ "$orch_i" -lt "$1" ] && kill -0 "$orch_running"; do
            sleep 1
            orch_i=$((orch_i + 1))
        done
        kill -TERM "$orch_running"
    ) </dev/null >/dev/null 4>&- &
}

# takes note that what orch_run ran has ended
orch_done() {
    wait "$orch_running"
    orch_running=
}

# folder, runner, deadline, grace, names from the node, names that are set, a script that sets them, argv
orch_start() {
    orch_demand "$1" || return
    [ -f "$orch_root/$2" ] || { printf %s "$orch_root"; return 3; }
    [ -d "$1" ] || orch_said mkdir -p -- "$1" || return
    [ -n "$orch_exported" ] ||
        orch_exported=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p')
    orch_folder=$1
    (orch_launch "$@") </dev/null >/dev/null 2>&1 4>&- &
    orch_p=$! orch_i=0
    until [ -d "$orch_folder/job" ]; do
        if ! orch_stat "$orch_p" || [ "$orch_state" = Z ] || [ "$orch_i" -gt 1200 ]; then
            [ ! -d "$orch_folder/job" ] || break
            kill -KILL "-$orch_p" || kill -KILL "$orch_p"
            printf 'the runner made no folder'
            return 1
        fi
        orch_i=$((orch_i + 1))
        [ "$orch_i" -lt 200 ] || sleep 0.01 || sleep 1
    done
}

# as orch_start; becomes the runner
orch_launch() {
    orch_names=$6
    for orch_n in $5; do
        case " $6 " in *" $orch_n "*) continue ;; esac
        eval "orch_has=\${$orch_n+x} orch_value=\${$orch_n-}"
        [ -n "$orch_has" ] || orch_of_init "$orch_n" || continue
        eval "ORCH_SET_$orch_n=\$orch_value; export ORCH_SET_$orch_n"
        orch_names="$orch_names $orch_n"
    done
    for orch_n in $orch_exported; do
        case $orch_n in
        PATH | HOME | LC_ALL) ;;
        *) unset "$orch_n" ;;
        esac
    done
    eval "$7"
    orch_runner=$orch_root/$2 orch_deadline=$3 orch_grace=$4
    shift 7
    exec setsid sh "$orch_runner" "$orch_folder" "$orch_deadline" "$orch_grace" "${orch_names# }" "$@"
}

# orch_value: what process 1 was given as $1; providers give a pod's variables to it alone
orch_of_init() {
    [ -r /proc/1/environ ] || return 1
    orch_value=$(tr '\n\000' '\001\n' </proc/1/environ | sed -n "s/^$1=//p" | tr '\001' '\n'; printf .)
    orch_value=${orch_value%.}
    [ -n "$orch_value" ] || return 1
    orch_value=${orch_value%"$orch_nl"}
}

orch_prevent() {
    orch_marked "$1" || return 0
    [ -d "$1/job" ] || orch_said mkdir -p -- "$1/job"
}

orch_note() {
    orch_read "$1"
    orch_code=$?
    case $orch_code in
    0) printf '1%s\036' "$orch_text" ;;
    1) printf '0\036' ;;
    *) printf '2\036' ;;
    esac
    return "$orch_code"
}

# what is noted of the job in folder $1, where it stands, and what is noted then: it may have ended between the
# looks. $2 is the folder with \001 for newlines
orch_inspect() {
    orch_note "$1/job/exit"
    orch_note "$1/job/pid"
    orch_folder=$1 orch_line=$2
    set -f
    set -- $orch_text
    set +f
    orch_how=lost
    if [ $# = 3 ] && orch_alive "$@"; then
        orch_how=running
    elif orch_runner_of "$orch_line"; then
        # a runner that somebody stopped says nothing more of a program that is gone
        { [ $# = 3 ] && [ "$orch_state" = T ]; } || orch_how=running
    elif [ ! -d "$orch_folder/job" ]; then
        orch_how=absent
    fi
    printf '%s\036' "$orch_how"
    orch_note "$orch_folder/job/exit"
    orch_note "$orch_folder/job/pid"
    return 0
}

# the shell that watches the job in folder $1 (\001 for newlines), at the head of its group: its watchdog bears
# the same command line
orch_runner_of() {
    for orch_f in /proc/[0-9]*/cmdline; do
        orch_l=
        # a shell leaves out the NULs that end the words: this only says which of them to look at
        IFS= read -r orch_l <"$orch_f"
        case $orch_l in sh*/.orch-runner-*.sh*) ;; *) continue ;; esac
        orch_c=$(tr '\000\n' '\n\001' <"$orch_f"; printf .)
        case $orch_c in "sh$orch_nl"*) ;; *) continue ;; esac
        orch_c=${orch_c#*"$orch_nl"}
        case ${orch_c%%"$orch_nl"*} in */.orch-runner-*.sh) ;; *) continue ;; esac
        case ${orch_c#*"$orch_nl"} in "$1$orch_nl"*) ;; *) continue ;; esac
        orch_f=${orch_f#/proc/}
        orch_stat "${orch_f%%/*}" && [ "$orch_group" = "${orch_f%%/*}" ] && return
    done
    return 1
}

# what is noted of the program in folder $1; signal $2 for its group if it still leads it
orch_signal() {
    orch_note "$1/job/pid" || return 0
    orch_number=$2
    set -f
    set -- $orch_text
    set +f
    [ $# != 3 ] || ! orch_alive "$@" || kill "-$orch_number" "-$1"
    return 0
}

# where folder $1 truly lies, and where every process works
orch_cwds() {
    orch_real "$1"
    printf '%s\036' "$orch_path"
    ls -ln /proc/[0-9]*/cwd
    return 0
}

# the same of single processes, exactly
orch_cwd() {
    for orch_p; do
        readlink -n "/proc/$orch_p/cwd"
        printf '\036'
    done
}

# refuses a folder that is there and that is not ours
orch_ours() {
    ! orch_there "$1" || orch_demand "$1"
}

# KILL for those that have no terminal; whoever has one is a person who looks on
orch_kill() {
    for orch_p; do
        orch_stat "$orch_p" && [ "$orch_tty" = 0 ] && [ "$orch_p" != "$$" ] || continue
        kill -KILL "$orch_p"
        printf '%s ' "$orch_p"
    done
    return 0
}

# --- the node itself ---

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

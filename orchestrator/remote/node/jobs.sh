# Commands and jobs: started, watched, ended.

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
    if orch_note "$1/job/exit"; then
        orch_note "$1/job/pid"
        printf 'exited\0360\0360\036'
        return 0
    fi
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

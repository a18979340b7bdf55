#!/bin/sh
# Runs one role program, detached: sh runner.sh FOLDER DEADLINE GRACE NAMES PROGRAM [ARGUMENT...]
#
# Under FOLDER/job: stdout, stderr, pid ("pid start-ticks boot-id"), exit (the exit code; 128 + N for signal N).
# Making FOLDER/job is atomic, so a second start of the same job does nothing. The program gets a session and
# process group of its own; DEADLINE seconds after its start it is ended, TERM first, KILL after GRACE seconds.
# Like every command in the background it begins with INT and QUIT ignored. The runner itself must lead a process
# group of its own. If it is killed, its watchdog still keeps the deadline. NAMES are variables that the program
# finds set, in one argument; their values are in ORCH_SET_NAME here, so that none of them is meant for this shell.
set -u
folder=$1 deadline=$2 grace=$3 names=$4
shift 4
cd "$folder" || exit 125
here=$PWD
mkdir job 2>/dev/null || exit 0

# start time of process $1 in clock ticks since boot; 0 if there is no such process
ticks() {
    read -r line <"/proc/$1/stat" || line=
    # the command's name may hold blanks: fields are counted after its closing parenthesis
    set -- ${line##*)}
    [ $# -ge 20 ] || set -- 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
    shift 19
    printf '%s\n' "$1"
}

# setsid is looked for before the program's own PATH is set
(
    setsid=$(command -v setsid) || setsid=setsid
    set -- "$setsid" "$@"
    for ORCH_SET_ in $names; do
        eval "$ORCH_SET_=\$ORCH_SET_$ORCH_SET_; export $ORCH_SET_; unset ORCH_SET_$ORCH_SET_"
    done
    unset OLDPWD ORCH_SET_
    exec "$@"
) >job/stdout 2>job/stderr </dev/null &
child=$!
# its group exists once setsid has run: a signal to a process noted before that would reach nobody
until kill -0 "-$child" 2>/dev/null; do
    read -r line <"/proc/$child/stat" || break
    case $line in *") Z "*) break ;; esac
done
start=$(ticks "$child")
read -r boot </proc/sys/kernel/random/boot_id || boot=unknown

# a group's number is not given again while the group has members, and then only to a process that starts later
end() {
    case $(ticks "$child") in
    0 | "$start") kill "-$1" "-$child" ;;
    esac
}

(
    # its sleep is gone before it is: whoever waits for the one has waited for both
    trap 'kill -KILL "$!"; wait; exit' TERM
    sleep "$deadline" &
    wait "$!"
    end TERM
    sleep "$grace" &
    wait "$!"
    end KILL
) >/dev/null 2>&1 </dev/null &

# known from here on; whoever kills this shell now leaves a watchdog
printf '%s %s %s\n' "$child" "$start" "$boot" >job/pid.tmp && mv job/pid.tmp job/pid

wait "$child"
code=$?
# whatever the program left in its group ends with it
kill -KILL "-$child" 2>/dev/null
# the watchdog and its sleep share this shell's own group; nothing is left when the exit code appears
trap '' TERM
kill -TERM "-$$" 2>/dev/null
kill -CONT "-$$" 2>/dev/null
wait
printf '%s\n' "$code" >job/exit.tmp || exit
# nothing works in the folder any more when the exit code appears
cd / && mv "$here/job/exit.tmp" "$here/job/exit"

# Folders that are made safe from others, and the lock of one.

# makes folders of this user's alone where there is nothing
orch_make() {
    for orch_f; do
        orch_there "$orch_f" || orch_said mkdir -m 700 -- "$orch_f" || orch_there "$orch_f" || return 1
    done
}

orch_user() {
    id -u
}

# mode, owner and kind of folders whose names are plain, as ls says, in the order of their names
orch_looks_at_all() {
    ls -ldn -- "$@"
}

# the same of each folder by itself, whatever its name
orch_looks() {
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

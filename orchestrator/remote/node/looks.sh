# Looks that start no process: they are made again and again.

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

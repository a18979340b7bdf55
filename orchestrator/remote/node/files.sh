# Files: whole, hashed, renamed into place. Folders are removed here too.

orch_regular() {
    [ ! -L "$1" ] || { printf 'not a regular file'; return 6; }
    [ -e "$1" ] || return 3
    [ -f "$1" ] || { printf 'not a regular file'; return 6; }
    [ -r "$1" ] || { printf 'Permission denied'; return 1; }
}

# file, the most bytes that are wanted
orch_get() {
    orch_regular "$1" || return
    orch_size_of "$1" || { printf 'cannot be read'; return 1; }
    [ "$orch_size" -le "$2" ] || { printf '%s bytes' "$orch_size"; return 6; }
    printf '%s\n' "$orch_size"
    orch_first "$orch_size" <"$1"
}

# orch_size: how long file $1 is; some `wc` would read all of it to know, and a hole may be a million times the disk
orch_size_of() {
    orch_l=$(ls -ldn -- "$1") || return
    set -f
    set -- $orch_l
    set +f
    orch_size=$5
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

# orch_sum: SHA-256 of a file of $2 bytes, which is to be $3, by whatever there is; 1 if there is nothing
#
# What gives the digest that is expected can hash, and is not tried on anything else before.
orch_hash() {
    orch_h=${orch_hasher:-sha256sum}
    # slower to start, and faster from here on
    [ "$2" -lt 2097152 ] || orch_h=openssl
    if command -v "$orch_h" >/dev/null; then
        orch_sum=$("orch_by_$orch_h" <"$1")
        orch_sum=${orch_sum%% *}
        [ "$orch_sum" != "$3" ] || return 0
    fi
    orch_hashers || return 1
    orch_sum=$("orch_by_$orch_hasher" <"$1")
    orch_sum=${orch_sum%% *}
}

# orch_hasher: a tool that knows the digest of nothing
orch_hashers() {
    [ -z "$orch_hasher" ] || return 0
    for orch_h in sha256sum openssl shasum busybox python3 python perl; do
        command -v "$orch_h" >/dev/null || continue
        case $("orch_by_$orch_h" </dev/null) in
        e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855*) ;;
        *) continue ;;
        esac
        orch_hasher=$orch_h
        return
    done
    return 1
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
    if ! orch_hash "$orch_part" "$3" "$2"; then
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
    orch_e=$(orch_take "$3" 2>&1) || {
        rm -f -- "$orch_part"
        printf %s "${orch_e:-cannot be written}"
        return 1
    }
    orch_settle "$1" "$2" "$3" "$4" || return
    [ -z "$5" ] || orch_keep "$1" "$2"
}

orch_take() {
    umask 077
    if [ "$1" -le 65536 ]; then
        # what is left on the stream if this cannot be written is no request of ours, and soon passed over
        orch_first "$1" >"$orch_part"
    else
        orch_first "$1" | { cat >"$orch_part" || { cat >/dev/null; return 1; }; }
    fi
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

# For scripts that run in the lab's guest and leave what came of each command in the folder $out: sourced by them.
# shellcheck shell=bash disable=SC2154

# A command that takes longer than this is stuck: also on a busy host, whose emulator may be ten times slower.
stuck_after_s=300

# doing NAME: what the watchdog will say is stuck.
doing() { echo "$1" >/tmp/doing; }

# note NAME COMMAND...: its output, messages and exit code as files.
note() {
    local name=$1
    shift
    doing "$name $EPOCHREALTIME"
    "$@" >"$out/$name.out" 2>"$out/$name.err"
    echo $? >"$out/$name.code"
}

# must COMMAND...: a step of the set-up; the test fails on any that fails.
must() {
    local said
    said=$("$@" 2>&1) || echo "$*: $said" >>"$out/setup.failed"
}

# Says where in the kernel a stuck command is, and ends every lanemark: the script goes on, and its test fails.
watchdog() {
    local now before='' since=$SECONDS name process
    [[ -p /tmp/nap ]] || mkfifo /tmp/nap
    exec {nap}<>/tmp/nap
    while :; do
        read -r -t 5 -u "$nap"
        now=$(</tmp/doing)
        if [[ $now != "$before" ]]; then
            before=$now since=$SECONDS
        fi
        ((SECONDS - since >= stuck_after_s)) || continue
        since=$SECONDS name=${now%% *}
        {
            for process in /proc/[0-9]*; do
                [[ $(<"$process/comm") =~ ^(lanemark|lab-|mdadm|cryptsetup|bash|modprobe|dd)$ ]] || continue
                echo "${process#/proc/} $(tr '\0' ' ' <"$process/cmdline")"
                cat "$process"/task/*/stack
            done 2>/dev/null
            echo w >/proc/sysrq-trigger
            dmesg | tail -n 200
        } >"$out/$name.stuck"
        echo "$name is stuck" >>"$out/setup.failed"
        for process in /proc/[0-9]*; do
            [[ $(<"$process/comm") != lanemark ]] 2>/dev/null || kill -KILL "${process#/proc/}"
        done
    done
}
doing begin
watchdog &
watchdog_pid=$!
trap 'kill $watchdog_pid' EXIT

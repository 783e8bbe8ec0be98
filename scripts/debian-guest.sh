# What debian.sh runs in its copy, with bash: the script, while the nginx that
# runs there as a unit is asked all the time. It must answer each time, and its
# processes must be those of the start, but where the script says `touched`.
set -euo pipefail
cd /root

processes() { echo "$(cat /run/nginx.pid):$(cat /proc/"$(cat /run/nginx.pid)"/task/*/children)"; }
started=$(processes)

# untouched fails if nginx has another master or other workers than before.
untouched() {
    [ "$(processes)" = "$started" ] || { echo "nginx was touched: $(processes), and it was $started"; exit 1; }
}

# touched waits for the reload that a package of nginx has asked for, and takes
# the new workers for right.
touched() {
    eventually reloaded
    [ "$(cat /run/nginx.pid)" = "${started%%:*}" ] || { echo "nginx has another master"; exit 1; }
    started=$(processes)
}

reloaded() { [ "$(processes)" != "$started" ] && [ "$(processes | wc -w)" = "$(wc -w <<<"$started")" ]; }

# eventually waits until a command succeeds.
eventually() {
    for _ in $(seq 600); do
        if "$@"; then return; fi
        sleep 0.1
    done
    echo "not so, after a minute: $*"
    exit 1
}

ask() {
    while [ ! -e /run/enough ]; do
        if exec 3<>/dev/tcp/127.0.0.1/80 && printf 'GET / HTTP/1.0\r\n\r\n' >&3 && IFS= read -r line <&3 && [[ $line == *' 200 '* ]]; then
            echo served
        else
            echo "not served: ${line-}"
        fi
        sleep 0.05
    done
}
ask >answers 2>&1 &
asking=$!

. ./script

untouched
touch /run/enough
wait $asking
if grep -qv '^served$' answers; then
    sort answers | uniq -c
    exit 1
fi
echo "answers of nginx: $(wc -l <answers), all good"

# The life of the package under systemd: installed, sandboxed, hung, killed,
# upgraded, removed, purged. scripts/debian.sh runs it, and asks nginx all the while.
old=./build/spinguard_1.deb new=./build/spinguard_2.deb
shop=127.0.0.1:18080
quiet() { "$@" >log 2>&1 || { cat log; return 1; }; }
agent() { systemctl show --property MainPID --value spinguard; }
# The process first: asked after it, the state can't be that of the one before.
is_new() { now=$(agent) && [ "$now" != 0 ] && [ "$now" != "$1" ] && systemctl --quiet is-active spinguard; }
stays_out() { if "$@" 2>/dev/null; then echo "possible in the unit: $*"; exit 1; fi; }
forbid() { echo "$1" && exit 1; }

echo "== installed: the unit runs, and it is ready when it says so"
quiet apt-get install -y --no-install-recommends libnginx-mod-http-lua lua-cjson curl
touched
quiet apt-get install -y $old
main=$(agent)
spinguard workers | grep 0.0.0.0:80
systemctl --quiet is-enabled spinguard
untouched

echo "== sandboxed: reads everything, writes what is its own, talks to loopback only"
grep -q '^NoNewPrivs:.*1$' /proc/$main/status
grep -q '^Seccomp:.*2$' /proc/$main/status
inside="nsenter --target $main --mount"
for dir in / /etc /etc/spinguard /usr /var /var/lib /home /root /boot /sys/fs/cgroup; do stays_out $inside touch $dir/new; done
$inside touch /var/lib/spinguard/new /run/spinguard/new /tmp/new
[ ! -e /tmp/new ] || forbid "its /tmp is the host's"
[ "$(stat -c %a /var/lib/spinguard) $(stat -c %a /run/spinguard)" = "750 755" ]
ip address add 192.0.2.1/32 dev lo
connect='echo $$ >/sys/fs/cgroup/$2/cgroup.procs && exec 3<>/dev/tcp/$1/80'
bash -c "$connect" - 192.0.2.1 system.slice
bash -c "$connect" - 127.0.0.1 system.slice/spinguard.service
stays_out timeout 5 bash -c "$connect" - 192.0.2.1 system.slice/spinguard.service

echo "== acts: a picker that hangs is found, quarantined and evicted from within the sandbox"
cat >/etc/nginx/shop.conf <<'CONF'
load_module modules/ndk_http_module.so;
load_module modules/ngx_http_lua_module.so;
worker_processes 2;
pid /run/shop.pid;
error_log /var/log/nginx/shop.log notice;
events {}
http {
    access_log off;
    lua_shared_dict spinguard 4m;
    init_by_lua_block {
        spinguard = require "resty.spinguard"
        spinguard.init({ dict = "spinguard", dir = "/run/spinguard/shop" })
        spinguard.wrap("shop", function(peers)
            local address = peers[1].address
            return { find = function()
                while peers[1].weight == "0" do end
                return address
            end }
        end, { raw = true })
    }
    init_worker_by_lua_block { spinguard.init_worker() }
    upstream shop { server 0.0.0.1; balancer_by_lua_block { spinguard.balance("shop") } }
    server {
        listen 127.0.0.1:18080;
        location / { proxy_pass http://shop; }
        location /admin/ { rewrite ^/admin(/.*)$ $1 break; content_by_lua_block { spinguard.admin() } }
    }
    server { listen 127.0.0.1:18081; return 200 "one\n"; }
}
CONF
nginx -c /etc/nginx/shop.conf
publish() { curl -fsS -X PUT $shop/admin/upstreams/shop -d "[{\"address\":\"127.0.0.1:18081\",\"weight\":$1}]"; }
sed -i 's/^mode: observe/mode: enforce/' /etc/spinguard/agent.yaml
systemctl reload spinguard
eventually sh -c "spinguard workers | grep -q $shop"
publish 5
publish '"0"'
curl -sS -m 1 $shop || true
over() { spinguard incidents --json | grep -q '"outcome": *"recovered"'; }
eventually over
spinguard incidents
eventually curl -fsS -m 1 $shop
spinguard quarantine list
spinguard quarantine add --upstream shop --version 2 --for 1h --reason 'the test goes on for longer'
quarantined() { spinguard quarantine list | grep 'the test goes on'; }
quarantined
untouched

echo "== hung: systemd ends it and starts another"
mkdir -p /etc/systemd/system/spinguard.service.d
printf '[Service]\nWatchdogSec=3\n' >/etc/systemd/system/spinguard.service.d/short.conf
systemctl daemon-reload
systemctl restart spinguard
main=$(agent)
kill -STOP "$main"
eventually is_new "$main"
journalctl --unit spinguard | grep 'Watchdog timeout'
rm -r /etc/systemd/system/spinguard.service.d
systemctl daemon-reload
quarantined
untouched

echo "== killed in mid-upgrade: unpacked, not yet configured"
quiet dpkg --unpack $new
main=$(agent)
kill -KILL "$main"
eventually is_new "$main"
main=$(agent)
quiet dpkg --configure spinguard
eventually is_new "$main"
spinguard version
grep '^mode: enforce' /etc/spinguard/agent.yaml
quarantined
curl -fsS $shop
spinguard incidents show "$(spinguard incidents --json | grep -o '"id": *"[^"]*"' | head -n 1 | cut -d '"' -f 4)" | head -n 5
untouched

echo "== stopped by hand: an upgrade does not start it"
systemctl stop spinguard
quiet dpkg -i $new
[ "$(systemctl is-active spinguard)" = inactive ]
curl -fsS $shop
systemctl start spinguard

echo "== removed, and purged: nothing of it runs, the proxies stay"
quiet apt-get remove -y spinguard
[ "$(systemctl is-active spinguard)" = inactive ]
[ -d /var/lib/spinguard/incidents ] && [ -e /etc/spinguard/agent.yaml ] && [ ! -e /usr/bin/spinguard ]
curl -fsS $shop
quiet apt-get purge -y spinguard
[ ! -e /var/lib/spinguard ] && [ ! -e /etc/spinguard ] && [ -e /run/spinguard/shop/ledger ]
[ -z "$(systemctl list-unit-files --no-legend 'spinguard*')" ]
curl -fsS $shop
kill -QUIT "$(cat /run/shop.pid)"

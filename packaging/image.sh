#!/usr/bin/env bash
# Build the image without a daemon, and try it: packaging/image.sh [TAG] [EXTRAS]     as root, with buildah
#   packaging/image.sh core
#   packaging/image.sh networks '[networks,encoder,archive]'
# BASE=image names the base; without one, and where no registry can be reached, debootstrap makes a Debian.
# BUILD_OPTIONS are passed to `buildah build`, for who needs a mirror's settings in the build stage.
# LAYERS=true keeps each step for the next build, and a copy of what it made.
# Tried: the user without rights, a read-only root, /health and /ready, an answer, thumbs on a volume, SIGTERM, the size.
set -euo pipefail
cd "$(dirname "$0")/.."
tag=${1:-core} extras=${2:-}
home=${IMAGE_HOME:-build/image}
mkdir -p "$home"
home=$(cd "$home" && pwd)
# overlayfs shares what layers have in common; vfs copies all of it for each, and is for where the kernel has no other.
driver=${STORAGE_DRIVER:-$(grep --quiet overlay /proc/filesystems && echo overlay || echo vfs)}
run() { buildah --root "$home/root" --runroot "$home/run" --storage-driver "$driver" "$@"; }

if [ -z "${BASE:-}" ]; then
  BASE=localhost/debian-bookworm
  if ! run inspect --type image "$BASE" > /dev/null 2>&1; then
    debootstrap --variant=minbase --include=ca-certificates bookworm "$home/debian" > "$home/debootstrap.log"
    (cd "$home/debian" && rm -rf var/cache/apt/* var/lib/apt/lists/* usr/share/doc/* usr/share/man/* usr/share/locale/*)
    made=$(run from scratch)
    run add --quiet "$made" "$home/debian" / > /dev/null
    run commit --quiet --rm "$made" "$BASE" > /dev/null
    rm -rf "$home/debian"
  fi
fi

# shellcheck disable=SC2086
run build --quiet --layers="${LAYERS:-false}" --isolation chroot --format docker --build-arg BASE="$BASE" --build-arg EXTRAS="$extras" \
  ${BUILD_OPTIONS:-} --tag "localhost/matchloom:$tag" . > "$home/build.log" 2>&1 || { tail -40 "$home/build.log"; exit 1; }
run images --format '{{.Name}}:{{.Tag}} {{.Size}}' "localhost/matchloom:$tag"

made=$(run from "localhost/matchloom:$tag")
root=$(run mount "$made")
data=$(mktemp -d)
child=
finish() { [ -z "$child" ] || kill -9 "$child" 2> /dev/null || true; umount "$root/data" "$root/feedback" "$root/tmp" "$root" 2> /dev/null || true
           run umount "$made" > /dev/null; run rm "$made" > /dev/null; rm -rf "$data"; }
trap finish EXIT
python3 - "$data" <<'CODE'
import sys, pathlib
asks = ("how do I change", "I have lost", "what about", "where is", "tell me about")
things = {"my password": "Open Settings, then Reset password.", "an invoice": "Invoices come by mail.", "a parcel": "Parcels leave within two days.", "the account": "Write to us and it is closed."}
rows = [f"{ask} {thing}\t{answer}\n" for thing, answer in things.items() for ask in asks]
pathlib.Path(sys.argv[1], "faq.tsv").write_text("question\tanswer\n" + "".join(rows))
CODE
mkdir "$data/feedback" && chown -R 10001 "$data"
mkdir -p "$root/data" "$root/feedback"
mount --bind "$root" "$root" && mount --bind "$data" "$root/data" && mount --bind "$data/feedback" "$root/feedback"
mount -t tmpfs tmpfs "$root/tmp" && mount -o remount,bind,ro "$root"
# A list and no function: what is started in the background must be the process itself, which gets the signal.
inside=(chroot --userspec 10001:10001 "$root" /usr/bin/env -i HOME=/tmp PATH=/opt/matchloom/bin:/usr/bin:/bin PYTHONDONTWRITEBYTECODE=1
        MATCHLOOM_API_KEY=only-for-this-trial)

"${inside[@]}" id
"${inside[@]}" touch /opt/matchloom/x 2> /dev/null && { echo 'the root can be written'; exit 1; }
echo 'read-only: the root cannot be written'
(cd "$root/data" && "${inside[@]}" /bin/sh -c 'cd /data && matchloom fit faq.tsv --out faq --encoder none') > /dev/null 2> "$home/fit.log" || { cat "$home/fit.log"; exit 1; }
entry=$(run inspect --type image "localhost/matchloom:$tag" \
  | python3 -c 'import json, sys; print(*json.load(sys.stdin)["Docker"]["config"]["Entrypoint"])')
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"${inside[@]}" /bin/sh -c "cd /data && exec ${entry/--port 8000/--port $port} faq --writable --feedback /feedback/thumbs.jsonl" 2> "$home/serve.log" &
child=$!
python3 - "$port" <<'CODE'
import json, sys, time, urllib.request
url = f"http://127.0.0.1:{sys.argv[1]}"
began = time.perf_counter()
def ask(path, body=None):
    given = {"authorization": "Bearer only-for-this-trial", "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(url + path, body and json.dumps(body).encode(), given), timeout=30) as answer:
        return json.load(answer)
while True:
    try:
        ask("/ready")
        break
    except OSError:
        if time.perf_counter() - began > 120: raise
        time.sleep(0.1)
found = ask("/v1/search", {"question": "lost parcel"})["answers"][0]
assert "Parcels" in found["text"], found
print(f"ready and answered after {time.perf_counter() - began:.1f} s")
ask("/v1/feedback", {"question": "lost parcel", "id": found["id"], "text": found["text"], "label": 1, "system": "faq"})
CODE
grep --quiet 'lost parcel' "$data/feedback/thumbs.jsonl" && echo 'thumbs are on the volume'
began=$(date +%s%N)
kill -TERM "$child"
code=0; wait "$child" || code=$?
child=
echo "SIGTERM: exit $code after $(( ($(date +%s%N) - began) / 1000000 )) ms"
# uvicorn ends by the signal that it was sent, once all is answered: the last line says that it came so far.
[ "$code" = 143 ] && tail -n 1 "$home/serve.log" | grep --quiet '"stopped"'
du -sm "$root" 2> /dev/null | awk '{print "on disk: " $1 " MB"}'

"""A way to an object store that answers in error, is slow, or loses connections in the middle of a write."""

from __future__ import annotations

import socket
import socketserver
import threading
import time
from contextlib import suppress

_BUSY = b"HTTP/1.1 503 Slow Down\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


class Proxy:
    """Relays to a port of loopback. `mode` is pass, busy (503), cut (after so many bytes) or slow (seconds a piece)."""

    def __init__(self, port: int) -> None:
        self.mode, self.cut, self.seconds, self.connections = "pass", 20_000, 1.0, 0
        proxy = self

        class Relay(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                proxy.connections += 1
                with suppress(OSError):
                    proxy._relay(self.request, port)

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _relay(self, client: socket.socket, port: int) -> None:
        with socket.create_connection(("127.0.0.1", port)) as store:
            back = threading.Thread(target=self._pump, args=(store, client), daemon=True)
            back.start()
            sent = 0
            while data := client.recv(8192):
                if self.mode == "busy":
                    client.sendall(_BUSY)
                    break
                if self.mode == "slow":
                    time.sleep(self.seconds)
                sent += len(data)
                store.sendall(data)
                if self.mode == "cut" and sent > self.cut:
                    break
            for one in (store, client):
                with suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
            back.join()

    def _pump(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)

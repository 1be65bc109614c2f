"""A service: four requests at a time, a lock around a cache that is filled by a slow regular expression."""
import http.server
import re
import threading
import urllib.request

REQUESTS = 24
lock = threading.Lock()


def slow_regex(text):
    return sum(len(re.findall(r"[a-z]+\d", text)) for _ in range(8))


def lookup(key):
    with lock:
        return slow_regex("abab" * 200 + key)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = str(lookup(self.path)).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def client(server, count):
    for number in range(count):
        urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/{number}").read()


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever).start()
    clients = [threading.Thread(target=client, args=(server, REQUESTS // 4)) for _ in range(4)]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    server.shutdown()


main()

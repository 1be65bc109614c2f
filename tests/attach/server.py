"""An HTTP service of one hot function: a thread for each request. Prints its port."""
import http.server
import json


def render_page(rows):
    total = 0
    for row in range(rows):
        total += row * row % 7
    return total


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps({"answer": render_page(20_000)}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
server.daemon_threads = True
print(server.server_address[1], flush=True)
server.serve_forever()

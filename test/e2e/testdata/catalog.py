# Takes the place of the server of the catalog, whose releases are not to be had as Go modules: has its arguments and environment, is ready
# while its database asks who comes and all that it reads is there, and answers with what that is.
import argparse
import glob
import http.server
import json
import os
import socket
import struct

parser = argparse.ArgumentParser()
parser.add_argument("command", choices=["catalog"])
parser.add_argument("--listen", required=True)
parser.add_argument("--catalogs-path", action="append", default=[])
parser.add_argument("--performance-metrics", required=True)
options = parser.parse_args()


def asked_by_database():
    names = f"user\0{os.environ['PGUSER']}\0database\0{os.environ['PGDATABASE']}\0\0".encode()
    with socket.create_connection((os.environ["PGHOST"], int(os.environ.get("PGPORT", "5432"))), 2) as database:
        database.sendall(struct.pack("!II", len(names) + 8, 3 << 16) + names)
        return database.recv(1) == b"R"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, seen = 200, {"files": sorted(glob.glob("/shared-data/*") + glob.glob(options.performance_metrics + "/*"))}
        try:
            seen["sources"] = {path: open(path).read() for path in options.catalogs_path}
            if not asked_by_database():
                status = 503
        except OSError as problem:
            status, seen["problem"] = 503, str(problem)
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(seen).encode())


host, port = options.listen.split(":")
http.server.ThreadingHTTPServer((host, int(port)), Handler).serve_forever()

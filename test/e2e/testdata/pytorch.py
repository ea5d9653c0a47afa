# What a distributed training begins with: the master waits for all workers, which find it by what the training operator tells
# them, and prints who came.
import os
import socket
import time

rank, port = os.environ["RANK"], int(os.environ["MASTER_PORT"])
if rank == "0":
    with socket.create_server(("", port)) as server:
        print(sorted(server.accept()[0].makefile().readline().strip() for _ in range(int(os.environ["WORLD_SIZE"]) - 1)))
else:
    while True:
        try:
            with socket.create_connection((os.environ["MASTER_ADDR"], port), 5) as master:
                master.sendall(f"{rank}\n".encode())
                break
        except OSError:
            time.sleep(0.2) # the master starts a moment later

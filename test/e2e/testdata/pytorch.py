# Rendezvous of a distributed training: workers connect to the master with the variables that the training operator sets. The master waits
# for all workers and prints their ranks.
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
            time.sleep(0.2) # the master may start later
